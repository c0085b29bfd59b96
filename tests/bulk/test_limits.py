"""Settings that can't be are refused before anything is touched."""

from __future__ import annotations

from pathlib import Path

import pytest
from drive import make_job

from outrider.bulk.limits import check_settings
from outrider.cluster.cores import num_cores
from outrider.core import UserError


def test_a_worker_with_more_cores_than_the_machine_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    spec = {"input": "in.jsonl", "job_dir": str(tmp_path)}
    check_settings(make_job({"bulk": {**spec, "cpus_per_worker": num_cores()}}))
    with pytest.raises(UserError, match=r"bulk\.cpus_per_worker"):
        check_settings(make_job({"bulk": {**spec, "cpus_per_worker": num_cores() + 1}}))
