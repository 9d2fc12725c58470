"""What schemathesis cannot know of this service by its API description, and where it would be wrong."""

import datetime
import json
import os
import pathlib

import schemathesis
from hypothesis import strategies as st

OWN_KEY_ID = os.environ["TILLMARK_KEY"].split("_")[1]
SCENE = json.loads(pathlib.Path("scene.json").read_text())
KEPT_QUERIES = {"hourly_sales", "hourly_sales_live"} | {path.split("/")[-1] for method, path, _ in SCENE if method == "PUT"}

cursors = set()

# The service takes times from 1900 to 2199; the format has no bounds.
YEARS = st.datetimes(min_value=datetime.datetime(1900, 1, 1), max_value=datetime.datetime(2199, 12, 31))
schemathesis.openapi.format("date-time", YEARS.map(lambda time: time.isoformat() + "Z"))


@schemathesis.serializer("application/x-ndjson")
def ndjson(context, value):
    """The description says that NDJSON is text; what is no text is a line of it."""
    return {"data": (value if isinstance(value, str) else json.dumps(value)).encode("utf-8", "replace")}


@schemathesis.deserializer("application/x-ndjson", "text/csv", "text/plain")
def text(context, response):
    return response.text


@schemathesis.hook
def before_call(context, case, kwargs):
    keep_what_the_run_needs(case)
    if case.meta and case.meta.generation.mode.is_positive:
        make_consistent(case)


def keep_what_the_run_needs(case):
    """Not the key of the run itself, or the service would rightly refuse everything from then on; nor the queries that
    the other requests read."""
    path = case.path_parameters or {}
    if path.get("key_id") == OWN_KEY_ID:
        path["key_id"] = "0" * 12
    if case.method == "DELETE" and path.get("name") in KEPT_QUERIES:
        path["name"] = "another"


def make_consistent(case):
    """What is right by itself may be wrong beside the rest, which no description can say: then the check that right
    requests are taken would be wrong."""
    query = case.query or {}
    if query.get("cursor") not in cursors:  # from a list's answer, not thought up
        query.pop("cursor", None)
    name = (case.path_parameters or {}).get("name") or query.get("query")
    known = {parameter.name for parameter in case.operation.query}
    known |= {"store_id"} if name == "by_store" else set()  # a field of the query's group_by
    for other in query.keys() - known:
        query.pop(other)
    if query.get("from", "") > query.get("to", "9"):
        query["from"], query["to"] = query["to"], query["from"]
    if "as_of" in query:  # since the query was made, and not in the future
        query["as_of"] = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if "granularity" not in query:
        query.pop("time_zone", None)
    if query.get("granularity", "PT1H") == "PT1H":
        query.pop("business_day_start", None)
    if case.headers:  # nothing compresses the body
        case.headers.pop("content-encoding", None)


@schemathesis.hook
def after_call(context, case, response):
    if response.headers.get("content-type") == ["application/json"]:
        body = response.json()
        if isinstance(body, dict) and body.get("next_cursor"):
            cursors.add(body["next_cursor"])
