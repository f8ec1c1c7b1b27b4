"""Names that act in the protocol, in chat templates or as media placeholders of common models, in brackets.

One list for all borders: what the policy reads, what an expert reads, what a registry may say.
"""

PROTOCOL_NAMES = "think|search|information|answer"
CHAT_NAMES = (
    "tool_call|tool_response|image|img|video|audio|"
    "image_pad|video_pad|audio_pad|vision_start|vision_end|vision_pad|img_context|image_soft_token|"
    "begin_of_image|end_of_image|boi|eoi|start_of_image|start_of_turn|end_of_turn|im_start|im_end|endoftext|"
    "begin_of_text|end_of_text|eot_id|s|bos|eos|pad|unk"
)
INSTRUCTION_NAMES = "inst|img|img_break|img_end|tool_calls|available_tools"
"""The same in square brackets."""
