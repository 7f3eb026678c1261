"""The official conformance suite, in server mode, and the proof that it can fail."""

import dataclasses
import json
import pathlib
import re
import subprocess
import tempfile

import mutate
from harness import Server, free_port, need

HERE = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass(frozen=True)
class Revision:
    """What a run for a revision of the protocol has to show."""

    name: str
    scenarios: int
    # What a server without a fault earns, but for the scenarios of the baseline.
    successes: int
    # The file of the scenarios that must not pass yet, with reasons.
    baseline: pathlib.Path | None = None

    def expected(self):
        """The names in the baseline. A line without a reason is an error."""
        names = []
        for number, line in enumerate(self.baseline.read_text().splitlines() if self.baseline else [], 1):
            if entry := re.fullmatch(r"  - ([\w-]+) # \S.*", line):
                names.append(entry[1])
            else:
                need(re.fullmatch(r"#.*|server:( \[\])?", line), f"{self.baseline.name}, line {number}: not `  - NAME # REASON`")
        return names


# When `tools/list` is answered as JSON, one more check is informative instead of a success.
MODERN = Revision("2026-07-28", 40, 152)
EARLIER = Revision("2025-11-25", 33, 61, HERE / "baseline-2025-11-25.yaml")
FAULTS = {
    "results without `resultType`": mutate.drop_result_type,
    "ids turned into strings": mutate.stringify_ids,
    "lists without `ttlMs`": mutate.drop_cache_hints,
    "notifications without a subscription id": mutate.drop_subscription_ids,
    "every error -32603": mutate.other_error_codes,
}
EARLIER_FAULTS = {
    "a handshake without `serverInfo`": mutate.drop_server_info,
    "results without `content`": mutate.drop_content,
    "log messages without a level": mutate.drop_log_level,
}
AMISS = ("FAILURE", "WARNING", "SKIPPED")


class Verdict:
    """What a run of the suite said, read from the files that it writes."""

    def __init__(self, output, status, text):
        self.status = status
        self.text = text
        self.checks = {}
        for file in pathlib.Path(output).glob("*/checks.json"):
            # The folder is `server-SCENARIO-TIMESTAMP`.
            name = re.fullmatch(r"server-(.+?)-\d{4}-\d{2}-\d{2}T[\dZ-]+", file.parent.name)
            need(name, f"the suite wrote into an unknown folder: {file.parent.name}")
            need(name[1] not in self.checks, f"the suite ran {name[1]} twice")
            self.checks[name[1]] = json.loads(file.read_text())

    def of(self, status):
        return [line for scenario in sorted(self.checks) for line in self.within(scenario, status)]

    def within(self, scenario, *statuses):
        return [
            f"{scenario}/{check['id']}: {check.get('errorMessage', '')}"
            for check in self.checks[scenario]
            if check["status"] in statuses
        ]

    def amiss(self, revision, expected):
        """Why this is not what the revision has to show, with exactly the scenarios `expected` amiss, or None."""
        if len(self.checks) != revision.scenarios:
            return f"{len(self.checks)} scenarios ran instead of {revision.scenarios}"
        empty = [name for name, checks in self.checks.items() if not checks]
        if empty:
            return f"without any check: {', '.join(empty)}"
        unknown = [name for name in expected if name not in self.checks]
        if unknown:
            return f"in the baseline and no scenario: {', '.join(unknown)}"
        for status in AMISS:
            found = [line for name in sorted(self.checks) if name not in expected for line in self.within(name, status)]
            if found:
                return f"{len(found)} {status}: {'; '.join(found)[:1500]}"
        stale = [name for name in expected if not self.within(name, *AMISS)]
        if stale:
            return f"in the baseline and passed: {', '.join(stale)}"
        successes = len(self.of("SUCCESS"))
        if successes < revision.successes:
            return f"{successes} successes instead of {revision.successes}"
        if self.status != 0:
            return f"exit status {self.status}"
        return None

    def clean(self, revision):
        return self.amiss(revision, revision.expected())


class Suite:
    def __init__(self, node, modules, revision):
        self.command = [node, modules / "@modelcontextprotocol/conformance/dist/index.js"]
        self.revision = revision
        self.requirements = modules / f"@modelcontextprotocol/conformance/requirements/{revision.name}.yaml"

    def run(self, url, *options):
        with tempfile.TemporaryDirectory(prefix="peers-conformance-") as output:
            done = subprocess.run(
                [*self.command, "server", "--url", url, "--output-dir", output, *options],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=240,
            )
            return Verdict(output, done.returncode, done.stdout)

    def all(self, url):
        baseline = ["--expected-failures", self.revision.baseline] if self.revision.baseline else []
        return self.run(url, "--suite", "all", "--spec-version", self.revision.name, *baseline)

    def required(self):
        """The scenarios that the revision requires of a server: the frozen list that comes with the suite."""
        names, inside = [], False
        for line in self.requirements.read_text().splitlines():
            if re.match(r"\w", line):
                inside = line.startswith("server:")
            elif inside and (item := re.match(r"\s+- (\S+)", line)):
                names.append(item[1])
        return names

    # Checks: each returns what it found, or raises.

    def passes(self, url):
        verdict = self.all(url)
        reason = verdict.clean(self.revision)
        need(reason is None, reason)
        return f"{len(verdict.checks)} scenarios, {len(verdict.of('SUCCESS'))} successes"

    def fails(self, url):
        reason = self.all(url).clean(self.revision)
        need(reason is not None, "the suite did not notice")
        return reason[:60].split(":")[0]

    def meets_requirements(self, url):
        verdict = self.run(url, "--requirements", self.revision.name)
        need(verdict.status == 0, f"exit status {verdict.status}: {verdict.text[-800:]}")
        required = self.required()
        need(required, f"no server scenarios in {self.requirements}")
        missing = [name for name in required if name not in verdict.checks]
        need(not missing, f"not run: {', '.join(missing)}")
        bad = [line for line in verdict.of("FAILURE") if line.split("/")[0] in required]
        need(not bad, "; ".join(bad))
        return f"{len(required)} required scenarios"

    def keeps_its_baseline_exact(self, url):
        """The same run, judged by baselines that are not the right one."""
        verdict, right = self.all(url), self.revision.expected()
        passed = sorted(name for name in verdict.checks if name not in right)
        for wrong, why in [
            *((right + [name], f"in the baseline and passed: {name}") for name in passed[:1]),
            *(([other for other in right if other != name], f"{name}/") for name in right),
            ([*right, "no-such-scenario"], "in the baseline and no scenario: no-such-scenario"),
        ]:
            reason = verdict.amiss(self.revision, wrong)
            need(reason is not None and why in reason, f"with {wrong} expected the verdict is {reason}")
        return f"{len(right)} scenarios in it"


def _run(report, peer, binary, suite, faults, more):
    def through(fault, judge):
        with mutate.MutatingProxy(server.port, fault) as proxy:
            return judge(proxy.url)

    whole = "the whole suite passes without failure and warning" + (", but for the baseline" if suite.revision.baseline else "")
    with Server(binary) as server:
        report.run(peer, whole, lambda: suite.passes(server.url))
        for name, judge in more.items():
            report.run(peer, name, lambda judge=judge: judge(server.url))
        report.run(peer, "a server that is not there fails", lambda: suite.fails(f"http://127.0.0.1:{free_port()}/mcp"))
        report.run(peer, "the mutating proxy without a fault passes", lambda: through(mutate.nothing, suite.passes))
        for name, fault in faults.items():
            report.run(peer, f"the suite fails on {name}", lambda fault=fault: through(fault, suite.fails))


def run(report, peer, binary, node, modules):
    suite = Suite(node, modules, MODERN)
    requirements = {f"everything that {MODERN.name} requires passes": suite.meets_requirements}
    _run(report, peer, binary, suite, FAULTS, requirements)


def earlier(report, peer, binary, node, modules):
    suite = Suite(node, modules, EARLIER)
    exact = {"a baseline that names too much or too little fails": suite.keeps_its_baseline_exact}
    _run(report, peer, binary, suite, EARLIER_FAULTS, exact)
