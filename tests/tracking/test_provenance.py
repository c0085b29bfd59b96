"""A run says which code, packages and machine it used, and nothing about its user."""

from __future__ import annotations

import getpass
import hashlib
import subprocess
from pathlib import Path

import pytest

from outrider.tracking import provenance


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    return subprocess.check_output(["git", *who, "-C", str(folder), *words], text=True).strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    (tmp_path / "job.py").write_text("a = 1\n")
    (tmp_path / ".gitignore").write_text("ignored.py\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "one")
    return tmp_path


def test_clean_code_is_its_revision(repository: Path) -> None:
    code = provenance.code_of(repository)
    assert code.revision == git(repository, "rev-parse", "HEAD")
    assert not code.is_dirty
    assert code.diff_sha256 == ""


def test_every_change_of_a_source_changes_the_digest(repository: Path) -> None:
    digests = []
    for name, text in [
        ("job.py", "a = 2\n"),
        ("job.py", "a = 3\n"),
        ("new.py", "b\n"),
        ("new.py", "c\n"),
    ]:
        (repository / name).write_text(text)
        code = provenance.code_of(repository)
        assert code.is_dirty
        digests.append(code.diff_sha256)
    assert len(set(digests)) == 4


def test_the_diff_itself_is_at_hand_and_bounded(repository: Path) -> None:
    (repository / "job.py").write_text("a = 2\n")
    (repository / "new.py").write_text("b = 1\n")
    code = provenance.code_of(repository)
    assert "-a = 1\n+a = 2\n" in code.diff
    digest = hashlib.sha256(b"b = 1\n").hexdigest()
    assert f"new.py {digest}\n" in code.diff
    assert hashlib.sha256(code.diff.encode()).hexdigest() == code.diff_sha256

    (repository / "job.py").write_text("x = 1\n" * 200_000)
    code = provenance.code_of(repository)
    assert len(code.diff) < provenance.MAX_DIFF + 100
    assert code.diff.endswith(" bytes in all\n")


def test_the_diff_is_no_tag(repository: Path) -> None:
    (repository / "job.py").write_text("a = 2\n")
    tags = provenance.collect(repository).to_tags()
    assert tags["code.is_dirty"] == "true"
    assert "code.diff" not in tags


def test_ignored_files_and_outputs_do_not_make_code_dirty(repository: Path) -> None:
    (repository / "ignored.py").write_text("x\n")
    (repository / "output.jsonl").write_text("{}\n")
    assert not provenance.code_of(repository).is_dirty


def test_code_without_git_still_has_its_lock(tmp_path: Path) -> None:
    (tmp_path / "requirements.lock").write_bytes(b"torch==2.13.0\n")
    code = provenance.code_of(tmp_path)
    assert code.revision == ""
    assert code.lock_sha256 == hashlib.sha256(b"torch==2.13.0\n").hexdigest()


def test_a_machine_without_git_and_gpu_is_fine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = provenance.collect(tmp_path)
    assert found.code.revision == ""
    assert found.hardware.gpus == ()


def test_packages_and_machine_are_recorded() -> None:
    tags = provenance.collect(Path(__file__).parent).to_tags()
    assert tags["packages.torch"].startswith("2.")
    assert int(tags["hardware.num_cores"]) >= int(tags["hardware.num_usable_cores"]) >= 1
    assert int(tags["hardware.memory_bytes"]) > 0
    assert tags["python"].startswith("3.")


def test_neither_environment_nor_user_is_recorded(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUTRIDER_TOKEN", "hf_secret")
    monkeypatch.setenv("LOGNAME", "zaphod-b")
    text = str(provenance.collect(repository))
    assert "hf_secret" not in text
    assert getpass.getuser() == "zaphod-b"
    assert "zaphod-b" not in text
    assert str(Path.home()) not in text
