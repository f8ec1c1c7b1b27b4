"""Pixels of a picture once a process, not once a rollout.

verl runs the image processor again for every rollout of a row when it collects what the actor needs. The prompt cache
hands out the same image objects for all of them, so the processor's result can be kept by identity.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from typing import Any

_KEPT = 512


def remember_pixels(processor: Any) -> None:
    """Make `processor.image_processor` remember its results for single images. Safe to call twice."""
    original = processor.image_processor
    if getattr(type(original), "remembers", False):
        return

    class Remembering(type(original)):  # type: ignore[misc]
        remembers = True

        def __call__(self, images: Any, *args: Any, **kwargs: Any) -> Any:
            single = _single(images)
            if single is None:
                return super().__call__(images, *args, **kwargs)
            key = (id(single), args, tuple(sorted((name, repr(value)) for name, value in kwargs.items())))
            if key not in memory:
                # the image is kept beside the result, so that its identity cannot be given to another
                memory[key] = (single, super().__call__(images, *args, **kwargs))
                if len(memory) > _KEPT:
                    memory.popitem(last=False)
            memory.move_to_end(key)
            return copy.copy(memory[key][1])

    memory: OrderedDict[Any, tuple[Any, Any]] = OrderedDict()
    Remembering.__name__ = type(original).__name__
    original.__class__ = Remembering


def _single(images: Any) -> Any:
    while isinstance(images, list | tuple) and len(images) == 1:
        images = images[0]
    return images if hasattr(images, "tobytes") else None
