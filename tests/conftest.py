"""What any test may have: a tiny random model, an MLflow store to copy, a PostgreSQL, a Ray."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from outrider.cluster.environment import prepare_environment

sys.path.append(str(Path(__file__).parent / "tracking"))  # for `servers`

from servers import Postgres

HERE = Path(__file__).parent

IN_MEMORY, ROOM = Path("/dev/shm"), 4 * 2**30  # on Linux; bytes: what a run leaves is far less
if IN_MEMORY.is_dir() and shutil.disk_usage(IN_MEMORY).free > ROOM:
    # SQLite waits for the disk at each commit, and there are tens of thousands.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))

# Before torch is loaded. Two processes on few cores: a thread that waits gives its core to others.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
prepare_environment()  # before anything here imports Ray, which then stays on loopback
settings.register_profile("outrider", deadline=None)  # no test is about speed
settings.load_profile("outrider")

TEXT = ["The ferry leaves at 22:40.", "A boat without a rudder drifts.", "Name: Ada, age: 36"] * 4
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
BY_HEART = "The ferry leaves at 22:40. A boat without a rudder drifts. Name: Ada, age: 36. " * 6


def write_model(folder: Path, *, seed: int, vocab_size: int = 320) -> Path:
    """A random Llama of two layers in float32, with a byte-level tokenizer and a chat template."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    backend.train_from_iterator(
        TEXT,
        trainers.BpeTrainer(
            vocab_size=vocab_size,
            special_tokens=SPECIAL,
            initial_alphabet=alphabet,
            show_progress=False,
        ),
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token=SPECIAL[2])
    tokenizer.chat_template = TEMPLATE
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.hookimpl(tryfirst=True)  # before -m is read
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`-m ray` and `-m "not ray"` can run beside each other: Ray waits most of its time."""
    for item in items:
        if "cluster" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.ray)


def pytest_collection_finish() -> None:
    """All that tests import is there, and stays: the collector need not walk it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("model"), seed=7)


@pytest.fixture(scope="session")
def draft_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another model with the same tokens."""
    return write_model(tmp_path_factory.mktemp("draft"), seed=8)


@pytest.fixture(scope="session")
def foreign_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with other tokens."""
    return write_model(tmp_path_factory.mktemp("foreign"), seed=9, vocab_size=300)


@pytest.fixture(scope="session")
def text_by_heart() -> str:
    """What the model in `taught_folder` says again."""
    return BY_HEART


@pytest.fixture(scope="session")
def taught_folder(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model of `model_folder` once it knows one text by heart: it is easy to guess."""
    import torch

    folder = tmp_path_factory.mktemp("taught") / "model"
    shutil.copytree(model_folder, folder)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.random.fork_rng():
        _taught(model_folder).save_pretrained(folder)
    torch.set_num_threads(threads)
    return folder


def _taught(folder: Path) -> Any:
    """The model of the folder, after some steps on the text."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    module: Any = AutoModelForCausalLM.from_pretrained(folder)
    ids = torch.tensor(AutoTokenizer.from_pretrained(folder).encode(BY_HEART))
    optimiser = torch.optim.AdamW(module.parameters(), lr=1e-2)
    for step in range(120):
        starts = [(step * 31 + place * 17) % (len(ids) - 48) for place in range(8)]
        batch = torch.stack([ids[start : start + 48] for start in starts])
        module(input_ids=batch, labels=batch).loss.backward()
        optimiser.step()
        optimiser.zero_grad()
    return module.eval()


@pytest.fixture(scope="session")
def fresh_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with MLflow's schema (5 s of work) and no run. For copies."""
    from mlflow import MlflowClient

    path = tmp_path_factory.mktemp("store") / "fresh.db"
    MlflowClient(f"sqlite:///{path}")
    return path


@dataclass(frozen=True)
class Cluster:
    """A Ray of four cores on this machine that is there already."""

    address: str
    dashboard: str  # host:port


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """To start a Ray costs seconds; whoever joins this one leaves nothing there.

    Its workers find what tests share, and the code beside these tests, whatever is installed. It
    shows every second what it was told of metrics.
    """
    toys = [HERE / name for name in ("bulk", "distill", "serving", "trial")]
    found = os.pathsep.join(str(path) for path in (HERE.parent / "platform", *toys))
    with subprocess.Popen(
        [sys.executable, str(HERE / "ray_holder.py")],
        env=os.environ | {"PYTHONPATH": found, "RAY_AUTH_MODE": "disabled"},  # on loopback
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        yield Cluster(*holder.stdout.readline().split())
        holder.communicate(timeout=60)


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory, cluster: Cluster) -> Iterator[None]:
    """This process has joined the Ray that is there: a command that is called here uses it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ADDRESS", cluster.address)
        from outrider.cluster.session import ray_session

        with ray_session(tmp_path_factory.mktemp("ray") / "log", num_cpus=1):
            yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL of our own, whose databases have names of their own."""
    if Postgres.programs() is None:
        pytest.skip("no PostgreSQL here: apt-get install postgresql")
    server = Postgres()
    try:
        server.start()
        yield server
    finally:
        server.remove()
