"""Atomic writes, locks, manifests and fingerprints, under real kills and on real full or read-only disks."""

import contextlib
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scope import artifacts
from scope.artifacts import Refusal, StageError

ROOT = Path(__file__).resolve().parent.parent


@contextlib.contextmanager
def process(code, *arguments):
    """Run Python code beside the test; it prints a line once it is where it should be killed."""
    started = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        yield started
    finally:
        started.kill()
        started.wait()
        started.stdout.close()


def kill_after_line(started):
    assert started.stdout.readline().strip() == "now"
    started.send_signal(signal.SIGKILL)
    assert started.wait(1200) == -signal.SIGKILL


# ---------------------------------------------------------------- atomic writes

SLOW_WRITE = """
import sys, time
from pathlib import Path
from scope import artifacts

def write(file):
    file.write(b"new" * 1_000_000)
    file.flush()
    print("now", flush=True)
    time.sleep(1200)

artifacts.write_file(Path(sys.argv[1]), write)
"""

SLOW_FOLDER = """
import sys, time
from pathlib import Path
from scope import artifacts

with artifacts.replacing_folder(Path(sys.argv[1])) as folder:
    (folder / "weights").write_bytes(b"new" * 1000)
    print("now", flush=True)
    time.sleep(1200)
"""


@pytest.mark.parametrize("old", [None, "old text"])
def test_a_kill_in_the_middle_of_a_write_leaves_what_was_there(tmp_path, old):
    path = tmp_path / "results.json"
    if old is not None:
        artifacts.write_text(path, old)
    with process(SLOW_WRITE, path) as started:
        kill_after_line(started)
    assert (path.read_text() if path.exists() else None) == old
    # The half-written file lies under a name of its own, until the next run of the stage sweeps it.
    leftovers = [p for p in tmp_path.iterdir() if p != path]
    assert [p.stat().st_size for p in leftovers] == [3_000_000]
    with artifacts.stage_lock(tmp_path):
        assert {p.name for p in tmp_path.iterdir()} == {".lock"} | ({"results.json"} if old else set())
        artifacts.write_text(path, "again")
    assert path.read_text() == "again"


def test_a_kill_while_a_folder_is_written_leaves_the_old_folder(tmp_path):
    target = tmp_path / "adapter"
    with artifacts.replacing_folder(target) as folder:
        (folder / "weights").write_text("old")
    with process(SLOW_FOLDER, target) as started:
        kill_after_line(started)
    assert {p.name: p.read_text() for p in target.iterdir()} == {"weights": "old"}
    artifacts.sweep(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["adapter"]


def test_replacing_a_folder_takes_nothing_over_from_the_old_one(tmp_path):
    target = tmp_path / "below" / "adapter"  # parents are made
    with artifacts.replacing_folder(target) as folder:
        (folder / "old").write_text("1")
    with artifacts.replacing_folder(target) as folder:
        assert list(folder.iterdir()) == []
        (folder / "new").write_text("2")
    assert [p.name for p in target.iterdir()] == ["new"]
    assert target.stat().st_mode & 0o777 == 0o755
    assert [p.name for p in target.parent.iterdir()] == ["adapter"]


def test_an_error_inside_a_write_changes_nothing(tmp_path):
    path = tmp_path / "a.jsonl"
    artifacts.write_text(path, "old")

    def rows():
        yield {"a": 1}
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        artifacts.write_jsonl(path, rows())
    with pytest.raises(RuntimeError, match="in the block"), artifacts.replacing_folder(tmp_path / "f") as folder:
        (folder / "half").write_text("x")
        raise RuntimeError("in the block")
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"a.jsonl": "old"}


def test_written_files_are_plain_utf8_and_readable_by_others(tmp_path):
    artifacts.write_json(tmp_path / "x.json", {"b": "日本", "a": 1})
    # Two spaces, insertion order, no escapes, one newline at the end: a diff of two runs stays readable.
    assert (tmp_path / "x.json").read_bytes() == '{\n  "b": "日本",\n  "a": 1\n}\n'.encode()
    artifacts.write_jsonl(tmp_path / "x.jsonl", [{"t": "a\nb\u2028c"}, {"t": ""}])
    assert (tmp_path / "x.jsonl").read_bytes() == '{"t": "a\\nb\u2028c"}\n{"t": ""}\n'.encode()
    assert (tmp_path / "x.json").stat().st_mode & 0o777 == 0o644


# ---------------------------------------------------------------- full and read-only disks


@pytest.fixture
def tmpfs(tmp_path):
    """Mount a small tmpfs with given options; skips where that needs rights this process lacks."""
    mounted = []

    def mount(options):
        folder = tmp_path / f"disk{len(mounted)}"
        folder.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, text=True
        )
        if done.returncode:
            pytest.skip(f"a tmpfs cannot be mounted here: {done.stderr.strip()}")
        mounted.append(folder)
        return folder

    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("mounting a tmpfs needs root on Linux")
    yield mount
    for folder in mounted:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_is_a_sentence_and_keeps_the_old_file(tmpfs):
    disk = tmpfs("size=256k")
    path = disk / "quartets.jsonl"
    artifacts.write_text(path, "old")
    with pytest.raises(StageError) as caught:
        artifacts.write_text(path, "x" * 1_000_000)
    assert str(caught.value) == (
        f"{path}: cannot be written: no space is left on the disk; free some and run the same command again"
    )
    # The half-written megabyte was removed, so there is room again.
    assert [p.name for p in disk.iterdir()] == ["quartets.jsonl"] and path.read_text() == "old"
    artifacts.write_text(path, "y" * 100_000)


def test_a_disk_that_fills_inside_a_folder_keeps_the_old_folder(tmpfs):
    target = tmpfs("size=256k") / "merged"
    with artifacts.replacing_folder(target) as folder:
        (folder / "weights").write_text("old")
    with pytest.raises(StageError, match="no space is left"), artifacts.replacing_folder(target) as folder:
        (folder / "weights").write_bytes(b"x" * 1_000_000)
    assert {p.name: p.read_text() for p in target.iterdir()} == {"weights": "old"}
    assert [p.name for p in target.parent.iterdir()] == ["merged"]


def test_a_read_only_disk_is_a_sentence(tmpfs):
    disk = tmpfs("size=256k,ro")
    sentence = "cannot be written: the file system is read-only; choose another output_dir"
    for path, write in (
        (disk / "a.json", lambda p: artifacts.write_json(p, {})),
        (disk / "run" / "mine" / "a.json", lambda p: artifacts.write_json(p, {})),
        (disk / "mine", lambda p: artifacts.stage_lock(p).__enter__()),
        (disk / "merged", lambda p: artifacts.replacing_folder(p).__enter__()),
    ):
        with pytest.raises(StageError) as caught:
            write(path)
        assert str(caught.value) == f"{path}: {sentence}"
    assert list(disk.iterdir()) == []


AS_NOBODY = """
import os, sys
from pathlib import Path
from scope import artifacts
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
for action in (
    lambda p: artifacts.write_text(p / "a.txt", "x"),
    lambda p: artifacts.stage_lock(p / "mine").__enter__(),
):
    try:
        action(Path(sys.argv[1]))
    except artifacts.StageError as error:
        print(error)
"""


def test_a_folder_without_write_permission_is_a_sentence():
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to other users
        folder = Path(name)
        folder.chmod(0o555)
        with process(AS_NOBODY, folder) as started:
            out = started.communicate(timeout=1200)[0]
        folder.chmod(0o755)
    sentence = "cannot be written: permission denied; choose another output_dir or change its permissions"
    assert out.splitlines() == [f"{folder / 'a.txt'}: {sentence}", f"{folder / 'mine'}: {sentence}"]


def test_an_output_folder_that_is_a_file_is_a_sentence(tmp_path):
    (tmp_path / "runs").write_text("")
    with pytest.raises(StageError, match="runs"):
        artifacts.write_text(tmp_path / "runs" / "mine" / "a.txt", "x")
    with pytest.raises(StageError, match="runs"), artifacts.stage_lock(tmp_path / "runs"):
        pass


UMASK = """
import os, sys
from pathlib import Path
os.umask(int(sys.argv[2], 8))
from scope import artifacts
root = Path(sys.argv[1])
artifacts.write_json(root / "new" / "a.json", {})
artifacts.write_parquet(root / "new" / "b.parquet", [{"a": 1}])
(root / "new" / "replaced.json").touch(0o600)
artifacts.write_jsonl(root / "new" / "replaced.json", [])
with artifacts.replacing_folder(root / "merged") as folder:
    os.close(os.open(folder / "model.safetensors", os.O_CREAT, 0o600))  # as safetensors makes its files
    (folder / "deep").mkdir(0o700)
    os.close(os.open(folder / "deep" / "open.json", os.O_CREAT, 0o666))
    os.chmod(folder / "deep" / "open.json", 0o666)  # as shutil.copy takes a mode along
    artifacts.write_text(folder / "deep" / "c.txt", "x")
with artifacts.stage_lock(root / "locked"):
    pass
"""


@pytest.mark.parametrize("umask, file, folder", [("077", 0o600, 0o700), ("002", 0o664, 0o775), ("022", 0o644, 0o755)])
def test_all_that_is_written_has_the_permissions_that_the_umask_gives(tmp_path, umask, file, folder):
    subprocess.run([sys.executable, "-c", UMASK, str(tmp_path), umask], cwd=ROOT, check=True, timeout=120)
    found = {p.relative_to(tmp_path): p.stat().st_mode & 0o777 for p in tmp_path.rglob("*")}
    assert len(found) == 11
    assert found == {name: folder if (tmp_path / name).is_dir() else file for name in found}


def test_a_shared_folder_hands_its_group_on(tmp_path):
    tmp_path.chmod(0o2775)
    with artifacts.replacing_folder(tmp_path / "merged") as folder:
        (folder / "deep").mkdir()
    assert (tmp_path / "merged").stat().st_mode & 0o2000 and (tmp_path / "merged" / "deep").stat().st_mode & 0o2000


# ---------------------------------------------------------------- locks

HOLD = """
import sys, time
from pathlib import Path
from scope import artifacts
with artifacts.stage_lock(Path(sys.argv[1])):
    print("now", flush=True)
    time.sleep(1200)
"""


def test_a_second_process_is_refused_and_a_killed_one_leaves_the_lock_free(tmp_path):
    folder = tmp_path / "mine"
    with process(HOLD, folder) as holder:
        assert holder.stdout.readline().strip() == "now"
        refused = pytest.raises(StageError, match=re.escape(f"{folder}: another process is working here"))
        with refused, artifacts.stage_lock(folder):
            pass
        assert holder.poll() is None, "it does not wait"
        with artifacts.stage_lock(tmp_path / "train"):
            pass  # another stage's folder is free
        holder.send_signal(signal.SIGKILL)
        holder.wait(1200)
        with artifacts.stage_lock(folder):
            pass
    assert [p.name for p in folder.iterdir()] == [".lock"]


def test_a_refused_process_sweeps_nothing_of_the_holder(tmp_path):
    with artifacts.stage_lock(tmp_path):
        half = tmp_path / ".results.json.abc.tmp"
        half.write_text("being written")
        code = "import sys; from pathlib import Path; from scope import artifacts\n" + (
            "try:\n    artifacts.stage_lock(Path(sys.argv[1])).__enter__()\n"
            "except artifacts.StageError:\n    print('refused')"
        )
        with process(code, tmp_path) as second:
            assert second.communicate(timeout=1200)[0].strip() == "refused"
        assert half.read_text() == "being written"


def test_the_lock_is_free_after_an_error_inside(tmp_path):
    with pytest.raises(KeyError), artifacts.stage_lock(tmp_path):
        raise KeyError("x")
    with artifacts.stage_lock(tmp_path):
        pass


# ---------------------------------------------------------------- manifests

KEY = {"pool": "aa", "mining": {"max_new_tokens": 96, "fallback": "none"}}


@pytest.fixture
def finished(tmp_path):
    folder = tmp_path / "mine"
    artifacts.write_text(folder / "quartets.jsonl", "{}\n")
    artifacts.finish(folder, stage="mine", key=KEY, outputs=["quartets.jsonl"], seed=3, counts={"quartets": 1})
    return folder


def test_a_manifest_says_what_went_in_and_came_out(finished):
    manifest = artifacts.read_manifest(finished)
    assert manifest["stage"] == "mine" and manifest["key"] == KEY and manifest["seed"] == 3
    assert manifest["counts"] == {"quartets": 1}
    # sha256 of the three bytes "{}\n"
    assert manifest["outputs"] == {"quartets.jsonl": hashlib.sha256(b"{}\n").hexdigest()}
    assert manifest["versions"]["python"] == sys.version.split()[0]
    assert {"scope", "torch", "transformers", "trl", "peft"} <= set(manifest["versions"])
    revision = artifacts.git_revision()
    assert manifest["git_revision"] == revision
    assert revision is None or re.fullmatch(r"[0-9a-f]{40}(\+dirty)?", revision)


def test_finished_means_this_key_and_these_bytes(finished):
    assert artifacts.is_finished(finished, KEY)
    assert artifacts.is_finished(finished, {"mining": {"fallback": "none", "max_new_tokens": 96}, "pool": "aa"})
    assert not artifacts.is_finished(finished, {**KEY, "pool": "bb"})
    assert not artifacts.is_finished(finished, {**KEY, "more": 1})
    assert not artifacts.is_finished(finished, {"pool": "aa"})
    (finished / "quartets.jsonl").write_text("{} \n")
    assert not artifacts.is_finished(finished, KEY)
    (finished / "quartets.jsonl").unlink()
    assert not artifacts.is_finished(finished, KEY)
    assert not artifacts.is_finished(finished / "nowhere", KEY)


def test_a_tuple_in_a_key_is_the_list_it_becomes_in_json(tmp_path):
    artifacts.finish(tmp_path, stage="train", key={"steps": (60, 300)}, outputs=[], seed=0)
    assert artifacts.is_finished(tmp_path, {"steps": (60, 300)})
    assert artifacts.is_finished(tmp_path, {"steps": [60, 300]})


def test_an_interrupted_stage_has_no_manifest(tmp_path):
    with pytest.raises(FileNotFoundError):
        artifacts.finish(tmp_path, stage="mine", key=KEY, outputs=["never_written"], seed=0)
    assert artifacts.read_manifest(tmp_path) is None


@pytest.mark.parametrize("text", ["", '{"stage": "mi', "\x00\x00"])
def test_a_broken_manifest_is_named(tmp_path, text):
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(StageError, match=re.escape(f"{tmp_path}/manifest.json: cannot be read")):
        artifacts.read_manifest(tmp_path)


def test_requiring_a_stage_gives_the_command_that_makes_it(finished, tmp_path):
    command = "python mine.py recipe=quickstart"
    assert artifacts.require(finished, "mine", command)["counts"] == {"quartets": 1}
    assert artifacts.require(finished, "mine", command, {"pool": "aa"})["seed"] == 3

    def refusal(*arguments):
        with pytest.raises(StageError) as caught:
            artifacts.require(*arguments)
        assert isinstance(caught.value, Refusal)  # entry points print it without a traceback
        return str(caught.value)

    nowhere, half, other = tmp_path / "nowhere", tmp_path / "half", tmp_path / "other"
    half.mkdir()
    (half / "claim.json").write_text("{}")
    assert refusal(nowhere, "mine", command) == f"{nowhere}: the output of stage 'mine' does not exist; run: {command}"
    assert refusal(half, "mine", command) == f"{half}: the output of stage 'mine' is half-written; run: {command}"
    artifacts.finish(other, stage="train", key={}, outputs=[], seed=0)
    found = refusal(other, "mine", command)
    assert found.startswith(f"{other}: ") and "'train'" in found and "'mine'" in found
    found = refusal(finished, "mine", command, {"pool": "bb"})
    assert found.startswith(f"{finished}: ") and "pool" in found and "'aa'" in found and "'bb'" in found
    assert command in found


def test_required_outputs_must_be_the_bytes_of_the_manifest(finished):
    (finished / "quartets.jsonl").write_text("half of it")
    with pytest.raises(StageError, match=r"quartets\.jsonl"):
        artifacts.require(finished, "mine", "python mine.py")
    (finished / "quartets.jsonl").unlink()
    with pytest.raises(StageError, match=r"quartets\.jsonl"):
        artifacts.require(finished, "mine", "python mine.py")


@pytest.mark.parametrize("state", ["claimed", "finished"])
def test_a_folder_with_other_work_is_refused_and_the_difference_named(tmp_path, state):
    folder, command = tmp_path / "mine", "python mine.py recipe=r"
    artifacts.refuse_other_work(folder, KEY, "mine", command)
    if state == "finished":
        artifacts.finish(folder, stage="mine", key=KEY, outputs=[], seed=0)
    artifacts.refuse_other_work(folder, dict(reversed(KEY.items())), "mine", command)  # the same work goes on
    other = {"pool": "aa", "mining": {"max_new_tokens": 48, "fallback": "none"}}
    with pytest.raises(StageError) as caught:
        artifacts.refuse_other_work(folder, other, "mine", command)
    text = str(caught.value)
    assert text.startswith(f"{folder}: holds mine work for other inputs or settings (")
    assert "max_new_tokens: 96 there, 48 now" in text and "pool" not in text and "fallback" not in text
    assert text.endswith(f"then run: {command}")
    assert json.loads((folder / "claim.json").read_text()) == KEY


# ---------------------------------------------------------------- fingerprints


def test_fingerprints_are_stable_across_versions_of_this_code():
    # sha256 of the canonical text, so that stores and manifests of older runs stay valid.
    text = '{"a":[1,2.5,null,true],"b":"é"}'
    assert artifacts.fingerprint({"b": "é", "a": (1, 2.5, None, True)}) == hashlib.sha256(text.encode()).hexdigest()
    assert artifacts.fingerprint([]) == hashlib.sha256(b"[]").hexdigest()
    assert len(artifacts.fingerprint("\ud800")) == 64  # model output may hold a lone surrogate


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=3), JSON, max_size=4))
def test_fingerprints_ignore_key_order_only(value):
    assert artifacts.fingerprint(value) == artifacts.fingerprint(dict(reversed(value.items())))
    assert artifacts.fingerprint(value) != artifacts.fingerprint({**value, "more": 0})
    assert artifacts.fingerprint([value]) != artifacts.fingerprint(value)


def test_file_hash_is_the_content_hash(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    # FIPS 180-2's own example.
    assert artifacts.file_hash(tmp_path / "a") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
