"""Public fakes, shipped beside the interfaces they stand in for: one noun a file."""

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
