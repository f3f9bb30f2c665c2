"""Says in one line what scripts/sam-local-check.sh compares:

    sam-local-told.py answer NAME     what a function answered
    sam-local-told.py sent NAME       what `dakghar send --json` got
    sam-local-told.py row NAME        what `dakghar inbox show --json` shows
    sam-local-told.py delivery NAME   what `dakghar delivery show --json` shows

All read standard input. Times, drawn ids and durations are left out, so that a line is the same in every run; and what
functions log, since `sam local` loses the first lines of a container that is quick.
"""

import json
import sys

# What a dispatcher gets that asks for a name that nobody has: the second one where no resolver answers.
UNREACHED = {"egress_name_unknown", "egress_timeout"}


def http(answer: dict) -> str:
    said = answer["body"]
    if said.startswith("{"):  # a handshake is answered in plain text
        body = json.loads(said)
        said = body.get("result") or body.get("error")
    return f"{answer['statusCode']} {said}"


def batch(answer: dict) -> str:
    """Which messages a function gave back, by the last digits of their ids: the samples count them."""
    given_back = [failure["itemIdentifier"][-3:].lstrip("0") for failure in answer["batchItemFailures"] or []]
    return "gave back " + " ".join(given_back) if given_back else "all done"


def answer(text: str) -> str:
    value = json.loads(text) if text.strip() else None
    if value is None:
        return "done"
    if "errorMessage" in value:
        return f"{value.get('errorType')} {value['errorMessage']}"
    return http(value) if "statusCode" in value else batch(value)


def sent(text: str) -> str:
    value = json.loads(text)
    return f"{value['status']} {value['result']}"


def row(text: str) -> str:
    value = json.loads(text)
    promise = value["outbox"]
    told = "no promise" if promise is None else f"a promise, published {promise['wakes']}x"
    return " ".join(filter(None, [value["status"], value["outcome"], value["event_type"]])) + ", " + told


def delivery(text: str) -> str:
    value = json.loads(text)
    reason = "partner not found" if value["last_error"] in UNREACHED else value["last_error"]
    return f"{value['status']}, {reason}, after attempts: {len(value['attempts'])}"


if __name__ == "__main__":
    what, name = sys.argv[1:]
    tell = {"answer": answer, "sent": sent, "row": row, "delivery": delivery}[what]
    print(f"{name}: {tell(sys.stdin.read())}")
