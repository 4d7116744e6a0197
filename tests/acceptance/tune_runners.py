"""Runners that are commands: compiled kernels are measured on this machine, under qemu-aarch64, and through a real sshd
on the loopback address of a network namespace, with two runners, one of which is killed midway.

usage: tune_runners.py BIN_DIR MEASURE_FILES    What a test lacks (qemu-user and a worker for aarch64 from the preset
`aarch64`, which INGOT_AARCH64_BUILD=DIR may name; openssh-server, openssh-client and root) is a SKIP."""
import json, os, pathlib, platform, shutil, signal, subprocess, sys, tempfile, time, unittest

from tools import Tools

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DATA = ROOT / "tests/data"
BIN = pathlib.Path(sys.argv.pop(1)).resolve()
MEASURE_FILES = pathlib.Path(sys.argv.pop(1)).resolve()
WORKERS = MEASURE_FILES.parent.parent / "libexec/ingot"
AARCH64 = pathlib.Path(os.environ.get("INGOT_AARCH64_BUILD", ROOT / "build/aarch64")).resolve() / "libexec/ingot"
QEMU = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
SSHD = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin")
FAULTS = {"1": ("crashed", "11"), "2": ("hung", "0"), "3": ("out of memory", "0"), "4": ("wrong result", "0")}


def children(parent):
    """The processes that a process has started, by number."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(stat.parent.name))
    return sorted(found)


def processes_of(program):
    """Those that run a file of this name, which may be gone."""
    found = []
    for exe in pathlib.Path("/proc").glob("[0-9]*/exe"):
        try:
            target = os.readlink(exe)
        except OSError:
            continue
        if target.startswith(str(program)):
            found.append(exe.parent.name)
    return found


class TuneRunners(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="ingot-runners-"))
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        for name, options in {"here": [], "naive": ["-O0"], "aarch64": ["--target", "cpu:aarch64"]}.items():
            result = Tools(BIN)("vm-compile", DATA / "digits.onnx", *options, "-o", cls.dir / f"{name}.ingot")
            assert result.returncode == 0, result.stderr

    def command(self, worker, program, count, fault, commands, reference=None):
        return [str(a) for a in (MEASURE_FILES, worker, self.dir / f"{program}.ingot",
                                 self.dir / f"{reference or program}.ingot", "4,1,8,8", count, fault, *commands)]

    def measure(self, *args, **options):
        result = subprocess.run(self.command(*args, **options), capture_output=True, text=True, timeout=120)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return [line.split("\t") for line in result.stdout.splitlines()]

    def check_faults(self, worker, program, commands):
        for fault, (outcome, number) in FAULTS.items():
            with self.subTest(outcome=outcome):
                *lines, runner = self.measure(worker, program, 2, fault, commands)
                self.assertEqual([line[2:4] for line in lines], [[outcome, number]] * 2, lines)
                self.assertTrue(all(line[5] for line in lines), lines)
                self.assertEqual(runner[3], "", "the runner is lost")

    def test_here(self):
        worker = WORKERS / f"measure-worker-{platform.machine()}"
        *lines, first, second = self.measure(worker, "here", 8, 0, ["{program}", "{program}"], reference="naive")
        self.assertEqual(sorted(int(line[0]) for line in lines), list(range(8)))
        self.assertEqual({tuple(line[2:5]) for line in lines}, {("ok", "0", "5")}, lines)
        self.assertEqual([first[2], second[2]], [platform.machine()] * 2)
        self.check_faults(worker, "here", ["{program}"])

    def test_qemu_aarch64(self):
        worker = AARCH64 / "measure-worker-aarch64"
        if not QEMU or not worker.exists():
            print("SKIP: no qemu-aarch64, or no worker for aarch64")
            return
        *lines, runner = self.measure(worker, "aarch64", 3, 0, [f"{QEMU} {{program}}"])
        self.assertEqual({tuple(line[2:5]) for line in lines}, {("ok", "0", "5")}, lines)
        self.assertEqual(runner[2], "aarch64")
        self.check_faults(worker, "aarch64", [f"{QEMU} {{program}}"])
        # What is compiled for another machine is refused, not crashed.
        *lines, _ = self.measure(worker, "here", 1, 0, [f"{QEMU} {{program}}"])
        self.assertEqual(lines[0][2], "refused", lines)

    def start_sshd(self, worker):
        """In namespaces of its own, where the folder of the worker is empty; gives its process and how to reach it."""
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.dir / name], check=True)
        remote_tmp = self.dir / "remote"
        remote_tmp.mkdir()
        (self.dir / "sshd_config").write_text(
            f"Port 2222\nListenAddress 127.0.0.1\nHostKey {self.dir}/host\nAuthorizedKeysFile {self.dir}/user.pub\n"
            f"StrictModes no\nUsePAM no\nPermitRootLogin yes\nPidFile none\nSetEnv TMPDIR={remote_tmp}\n")
        inside = (f"ip link set lo up && mount -t tmpfs none {worker.parent} && mount -t tmpfs none /run && "
                  f"mkdir /run/sshd && exec {SSHD} -D -e -f {self.dir}/sshd_config")
        log = open(self.dir / "sshd.log", "w")
        server = subprocess.Popen(["unshare", "-n", "-m", "sh", "-c", inside], stdout=log, stderr=log)
        self.addCleanup(lambda: (server.terminate(), server.wait(), log.close()))
        ssh = (f"ssh -F none -p 2222 -i {self.dir}/user -oBatchMode=yes -oStrictHostKeyChecking=no "
               f"-oUserKnownHostsFile=/dev/null -oLogLevel=ERROR root@127.0.0.1")
        enter = ["nsenter", f"--net=/proc/{server.pid}/ns/net"]
        for _ in range(100):
            answer = subprocess.run([*enter, *ssh.split(), "true"], capture_output=True, text=True)
            if answer.returncode == 0:
                return enter, ssh, remote_tmp
            if server.poll() is not None:
                break
            time.sleep(0.1)
        said = answer.stderr + (self.dir / "sshd.log").read_text()
        if "Operation not permitted" in said or "permission denied" in said.lower():
            print("SKIP: no sshd in a namespace:", said.splitlines()[-1])
            return None
        self.fail(said)

    def tune(self, worker, enter, runner):
        """vm-tune with two such runners, one of which is killed as soon as there are records: all trials are made."""
        records, trials = self.dir / "records.jsonl", 24
        command = [BIN / "vm-tune", DATA / "digits.onnx", "--dim", "batch=1", "--worker", worker, "--runner", runner, "--runner", runner,
                   "--db", records, "--trials", trials, "--repeats", 2, "--repeat-time", "100us", "--only", "schedules",
                   "--progress", "never", "--json", "-"]
        tune = subprocess.Popen([*enter, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (tune.kill(), tune.wait()))
        lines = lambda: records.read_text().splitlines() if records.exists() else []
        end = time.time() + 60
        while len(lines()) < 3 and tune.poll() is None and time.time() < end:
            time.sleep(0.02)
        self.assertIsNone(tune.poll(), "" if tune.poll() is None else tune.communicate()[1])
        runners = children(tune.pid)
        self.assertEqual(len(runners), 2, (runners, lines()))
        os.killpg(runners[0], signal.SIGKILL)
        _, errors = tune.communicate(timeout=180)
        self.assertEqual(tune.returncode, 0, errors)
        self.assertEqual(errors.count("is lost"), 1, errors)
        measured = [row for row in map(json.loads, lines()) if row["kind"] == "trial"]
        self.assertEqual({row["outcome"] for row in measured}, {"ok"})
        tried = [json.dumps([row["task"], row["choices"]], sort_keys=True) for row in measured]
        self.assertEqual(len(tried), len(set(tried)), "a trial was made twice")
        self.assertGreater(len(tried), trials)  # and the default schedules

    def test_ssh_with_a_runner_that_is_killed(self):
        if os.geteuid() != 0 or not SSHD or not shutil.which("ssh") or not shutil.which("nsenter"):
            print("SKIP: an sshd of its own needs root, openssh-server and openssh-client")
            return
        # The other machine does not have the worker's file.
        worker = self.dir / "worker/measure-worker"
        worker.parent.mkdir()
        shutil.copy(WORKERS / f"measure-worker-{platform.machine()}", worker)
        reached = self.start_sshd(worker)
        if reached is None:
            return
        enter, ssh, remote_tmp = reached
        count = 16
        command = self.command(worker, "here", count, 0, [f"{ssh} {{program}}"] * 2, reference="naive")
        pool = subprocess.Popen([*enter, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (pool.kill(), pool.wait()))
        lines = [pool.stdout.readline() for _ in range(3)]
        runners = children(pool.pid)
        self.assertEqual(len(runners), 2, (runners, lines))
        os.killpg(runners[0], signal.SIGKILL)
        rest, errors = pool.stdout.read(), pool.stderr.read()  # behind what readline has taken, which communicate drops
        self.assertEqual(pool.wait(timeout=120), 0, errors)
        *lines, first, second = [line.split("\t") for line in "".join(lines).splitlines() + rest.splitlines()]
        self.assertEqual(sorted(int(line[0]) for line in lines), list(range(count)))  # none lost, none doubled
        self.assertEqual({line[2] for line in lines}, {"ok"}, lines)
        self.assertEqual(sum(runner[3] != "" for runner in (first, second)), 1, (first, second))
        self.tune(worker, enter, f"{ssh} {{program}}")
        # Nothing stays behind: no file, and soon no worker.
        self.assertEqual(list(remote_tmp.iterdir()), [])
        end = time.time() + 10
        while processes_of(remote_tmp) and time.time() < end:
            time.sleep(0.1)
        self.assertEqual(processes_of(remote_tmp), [])


if __name__ == "__main__":
    unittest.main()
