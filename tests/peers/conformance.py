"""The official conformance suite, in server mode, and the proof that it can fail."""

import json
import pathlib
import re
import subprocess
import tempfile

import mutate
from harness import Server, free_port, need

REVISION = "2026-07-28"
SCENARIOS = 40
# What a server without a fault earns; when `tools/list` is answered as JSON, one more check is informative instead.
SUCCESSES = 152
FAULTS = {
    "results without `resultType`": mutate.drop_result_type,
    "ids turned into strings": mutate.stringify_ids,
    "lists without `ttlMs`": mutate.drop_cache_hints,
    "notifications without a subscription id": mutate.drop_subscription_ids,
    "every error -32603": mutate.other_error_codes,
}


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
        return [
            f"{scenario}/{check['id']}: {check.get('errorMessage', '')}"
            for scenario, checks in sorted(self.checks.items())
            for check in checks
            if check["status"] == status
        ]

    def clean(self):
        """Why this is not a pass of all scenarios, or None."""
        if len(self.checks) != SCENARIOS:
            return f"{len(self.checks)} scenarios ran instead of {SCENARIOS}"
        empty = [name for name, checks in self.checks.items() if not checks]
        if empty:
            return f"without any check: {', '.join(empty)}"
        for status in ("FAILURE", "WARNING", "SKIPPED"):
            found = self.of(status)
            if found:
                return f"{len(found)} {status}: {'; '.join(found)[:1500]}"
        successes = len(self.of("SUCCESS"))
        if successes < SUCCESSES:
            return f"{successes} successes instead of {SUCCESSES}"
        if self.status != 0:
            return f"exit status {self.status}"
        return None


class Suite:
    def __init__(self, node, modules):
        self.command = [node, modules / "@modelcontextprotocol/conformance/dist/index.js"]
        self.requirements = modules / f"@modelcontextprotocol/conformance/requirements/{REVISION}.yaml"

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
        return self.run(url, "--suite", "all", "--spec-version", REVISION)

    def required(self):
        """The scenarios that the revision requires of a server: the frozen list that comes with the suite."""
        names, inside = [], False
        for line in self.requirements.read_text().splitlines():
            if re.match(r"\w", line):
                inside = line.startswith("server:")
            elif inside and (item := re.match(r"\s+- (\S+)", line)):
                names.append(item[1])
        return names


def run(report, binary, node, modules):
    suite = Suite(node, modules)

    def everything():
        verdict = suite.all(server.url)
        need(verdict.clean() is None, verdict.clean())
        return f"{len(verdict.checks)} scenarios, {len(verdict.of('SUCCESS'))} successes"

    def requirements():
        verdict = suite.run(server.url, "--requirements", REVISION)
        need(verdict.status == 0, f"exit status {verdict.status}: {verdict.text[-800:]}")
        required = suite.required()
        need(required, f"no server scenarios in {suite.requirements}")
        missing = [name for name in required if name not in verdict.checks]
        need(not missing, f"not run: {', '.join(missing)}")
        bad = [line for line in verdict.of("FAILURE") if line.split("/")[0] in required]
        need(not bad, "; ".join(bad))
        return f"{len(required)} required scenarios"

    def dead():
        reason = suite.all(f"http://127.0.0.1:{free_port()}/mcp").clean()
        need(reason is not None, "the verdict on a server that is not there is a pass")
        return reason[:60].split(":")[0]

    def through(fault):
        with mutate.MutatingProxy(server.port, fault) as proxy:
            return suite.all(proxy.url)

    def control():
        verdict = through(mutate.nothing)
        need(verdict.clean() is None, verdict.clean())

    def caught(fault):
        reason = through(fault).clean()
        need(reason is not None, "the suite did not notice")
        return reason[:60].split(":")[0]

    with Server(binary) as server:
        report.run("conformance", "the whole suite passes without failure and warning", everything)
        report.run("conformance", f"everything that {REVISION} requires passes", requirements)
        report.run("conformance", "a server that is not there fails", dead)
        report.run("conformance", "the mutating proxy without a fault passes", control)
        for name, fault in FAULTS.items():
            report.run("conformance", f"the suite fails on {name}", lambda fault=fault: caught(fault))
