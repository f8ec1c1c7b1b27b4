"""The orchestrator as a chat model: messages and tools in, the assistant's next step out."""
