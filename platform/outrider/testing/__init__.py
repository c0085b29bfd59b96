"""Public fakes, shipped beside the interfaces they stand in for: one noun a file.

Each is imported when it is asked for: most have nothing to do with torch, which takes seconds.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outrider.testing.alphabet_engine import AlphabetEngine
    from outrider.testing.automaton import Automaton, AutomatonCompiler, AutomatonMatcher
    from outrider.testing.manual_clock import ManualClock
    from outrider.testing.memory_history import MemoryHistory
    from outrider.testing.memory_registry import MemoryRegistry
    from outrider.testing.memory_service import Effect, MemoryService
    from outrider.testing.memory_tracker import MemoryRun, MemoryTracker
    from outrider.testing.over_model import DelayedModel, OverModel, WedgedModel
    from outrider.testing.scripted_drafter import ScriptedDrafter
    from outrider.testing.scripted_feature_model import ScriptedFeatureModel
    from outrider.testing.scripted_model import ScriptedModel
    from outrider.testing.scripted_policy import ScriptedPolicy
    from outrider.testing.toy_engine import finish, toy_engine
    from outrider.testing.toy_head import toy_head
    from outrider.testing.toy_tokenizers import ByteTokenizer, LetterTokenizer

__all__ = [
    "AlphabetEngine",
    "Automaton",
    "AutomatonCompiler",
    "AutomatonMatcher",
    "ByteTokenizer",
    "DelayedModel",
    "Effect",
    "LetterTokenizer",
    "ManualClock",
    "MemoryHistory",
    "MemoryRegistry",
    "MemoryRun",
    "MemoryService",
    "MemoryTracker",
    "OverModel",
    "ScriptedDrafter",
    "ScriptedFeatureModel",
    "ScriptedModel",
    "ScriptedPolicy",
    "WedgedModel",
    "finish",
    "toy_engine",
    "toy_head",
]

HOMES = {
    "AlphabetEngine": "alphabet_engine",
    "Automaton": "automaton",
    "AutomatonCompiler": "automaton",
    "AutomatonMatcher": "automaton",
    "ByteTokenizer": "toy_tokenizers",
    "DelayedModel": "over_model",
    "Effect": "memory_service",
    "LetterTokenizer": "toy_tokenizers",
    "ManualClock": "manual_clock",
    "MemoryHistory": "memory_history",
    "MemoryRegistry": "memory_registry",
    "MemoryRun": "memory_tracker",
    "MemoryService": "memory_service",
    "MemoryTracker": "memory_tracker",
    "OverModel": "over_model",
    "ScriptedDrafter": "scripted_drafter",
    "ScriptedFeatureModel": "scripted_feature_model",
    "ScriptedModel": "scripted_model",
    "ScriptedPolicy": "scripted_policy",
    "WedgedModel": "over_model",
    "finish": "toy_engine",
    "toy_engine": "toy_engine",
    "toy_head": "toy_head",
}


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{HOMES[name]}"), name)
