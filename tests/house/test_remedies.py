"""Every remedy settles its error: each slug has a test that follows its remedy, or a reason why not.

A slug without either fails the build. So whoever writes an error shows that its remedy helps.
"""

import ast
import re
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

import pytest
from error_reference import find_errors

from tests.unit.declare.test_remedies import CHECKED

ROOT = Path(__file__).parents[2]

_TESTS: Mapping[str, Mapping[str, Collection[str]]] = {
    "tests/unit/declare/test_remedies.py": {
        "test_what_a_mistake_tells_to_write_settles_it": sorted(CHECKED),
    },
    "tests/unit/declare/entities/test_entity_remedies.py": {
        "test_what_a_mistake_of_an_entity_tells_to_write_settles_it": (
            "entity-by",
            "entity-id-type",
            "latest-without-order",
            "merge-refused",
            "variable-select",
            "window-length",
            "window-type",
        ),
    },
    "tests/unit/declare/test_publishing_mistakes.py": {
        "test_a_mistake_is_told_once_with_its_line_and_its_remedy_settles_it": (
            "no-row-key",
            "double-in-row-key",
            "view-of-view",
            "unknown-endpoint",
            "bad-secret",
            "bad-url",
            "address-refused",
            "bad-network",
            "bad-header",
        ),
    },
    "tests/unit/declare/test_serve_settings.py": {
        "test_a_mistake_about_serving_is_told_once_with_its_line_and_its_remedy_settles_it": (
            "bad-access-key",
            "same-access-key",
            "key-with-sources",
            "bad-host",
            "bad-origin",
        ),
    },
    "tests/unit/serve/test_dispatcher.py": {
        "test_only_what_the_table_of_work_has_can_be_asked_for": ("unknown-work",),
        "test_a_request_that_ends_its_server_each_time_is_given_up": ("request-ends-server",),
        "test_a_request_of_another_strandline_that_cannot_be_read_fails": ("request-unreadable",),
        "test_a_moved_lake_asks_for_a_restart": ("restart-to-apply",),
    },
    "tests/unit/serve/test_server.py": {
        "test_a_port_in_use_is_said": ("port-in-use",),
        "test_another_project_over_the_lake_is_told_whose_it_is": ("other-project",),
        "test_a_request_of_a_server_that_was_killed_is_done_once_by_the_next": ("server-lost",),
    },
    "tests/unit/serve/test_routes.py": {
        "test_a_list_is_never_longer_than_a_thousand": ("bad-parameter",),
        "test_a_run_or_a_request_that_is_unknown_is_found_by_the_id_that_an_answer_gave": (
            "unknown-run",
            "unknown-request",
        ),
    },
    "tests/unit/serve/test_deliveries.py": {
        "test_an_endpoint_that_is_the_server_itself_is_told_and_the_others_are_served": (
            "endpoint-is-server",
        ),
    },
    "tests/unit/serve/test_application.py": {
        "test_with_keys_a_caller_of_this_machine_needs_one_too": ("no-access-key", "unknown-access-key"),
        "test_a_key_allows_what_its_role_says": ("role-refused",),
        "test_an_unknown_route_asks_for_a_key_and_is_then_unknown": ("unknown-route", "wrong-method"),
        "test_a_declared_name_is_ours_once_there_are_keys": ("host-refused",),
        "test_a_page_that_was_refused_is_answered_once_its_origin_is_declared": ("origin-refused",),
        "test_a_body_that_is_not_declared_as_plain_json_is_refused": ("wrong-content-type",),
        "test_a_body_of_17_mib_is_refused_before_it_is_read_whole": ("body-too-large",),
        "test_a_body_that_is_not_what_the_route_takes_is_refused": (
            "not-json",
            "body-too-deep",
            "bad-body",
        ),
        "test_too_many_calls_with_one_key_are_refused_with_a_time_to_call_again": ("too-many-calls",),
        "test_an_address_that_others_reach_needs_keys_and_a_name": ("keys-required", "hosts-required"),
    },
    "tests/unit/app/test_changes.py": {
        "test_what_a_refused_reader_is_told_to_do_settles_it": (
            "bad-cursor",
            "cursor-of-another-dataset",
            "cursor-expired",
            "no-change-log",
        ),
    },
    "tests/unit/app/test_rows.py": {
        "test_what_a_refused_reader_of_rows_is_told_to_do_settles_it": (
            "bad-order",
            "bad-page",
            "snapshot-too-large",
        ),
    },
    "tests/unit/declare/test_sources.py": {
        "test_an_http_source_needs_a_lake_that_is_a_folder": ("inbox-not-local",),
    },
    "tests/unit/app/test_receiving.py": {
        "test_a_key_has_1_to_200_visible_characters": ("bad-idempotency-key",),
    },
    "tests/unit/ingest/test_inbox.py": {
        "test_another_body_with_the_same_key_is_refused_and_changes_nothing": ("idempotency-key-taken",),
    },
    "tests/unit/serve/test_facts.py": {
        "test_a_key_posts_to_its_sources_alone": ("source-not-allowed",),
    },
    "tests/contract/test_outbox.py": {
        "test_a_replay_of_what_is_unknown_or_has_not_ended_is_refused_until_it_has": (
            "unknown-delivery",
            "delivery-not-ended",
            "endpoint-gone",
        ),
    },
    "tests/unit/cli/test_deliveries.py": {
        "test_a_call_that_means_nothing_is_refused_and_done_as_the_message_says": ("unknown-trigger",),
        "test_quiet_takes_the_names_of_triggers": ("not-a-trigger",),
    },
    "tests/unit/cli/test_remedies.py": {
        "test_a_refused_call_is_done_when_made_as_the_message_says": (
            "bad-instant",
            "no-facts",
            "wrong-key",
            "already-there",
            "unknown-example",
            "call",
            "no-quarantine",
            "unknown-table",
            "unknown-version",
            "bad-known-at",
            "not-a-query",
            "unknown-verb",
            "bad-sql",
            "unknown-name",
            "filter-unknown",
            "filter-type",
            "filter-too-large",
            "no-reader",
            "backfill-of-a-source",
        ),
        "test_a_refused_call_about_tables_is_done_when_made_as_the_message_says": ("nothing-to-adopt",),
        "test_a_refused_backfill_is_planned_when_asked_for_as_the_message_says": (
            "unknown-partition",
            "no-partitions",
            "no-rows-to-filter",
        ),
        "test_a_call_without_a_verb_is_told_the_verbs": ("no-verb",),
        "test_what_was_not_known_then_is_known_at_the_instant_that_the_message_tells": ("not-known-then",),
        "test_of_what_is_not_kept_the_oldest_version_that_the_message_tells_is_read": ("not-kept",),
        "test_a_value_that_is_not_one_of_the_key_is_taken_as_query_prints_it": ("bad-value",),
        "test_a_project_is_found_in_its_folder_or_made_by_init": ("project-not-found",),
        "test_a_folder_that_cannot_be_written_is_settled_by_naming_another": ("folder-unwritable",),
        "test_a_lake_that_cannot_be_used_is_settled_by_the_setting_or_the_variable": ("lake-unreadable",),
        "test_a_table_whose_log_is_damaged_is_made_again_as_the_doctor_says": ("table-unreadable",),
        "test_a_damaged_file_is_settled_as_the_deep_doctor_says": ("file-damaged",),
        "test_what_cannot_be_adopted_is_settled_as_the_message_says": ("cannot-adopt",),
    },
    "tests/unit/cli/test_rebuild_catalog.py": {
        "test_a_catalog_that_cannot_be_used_is_settled_as_the_message_says": ("catalog-unreachable",),
    },
    "tests/unit/sql/test_ties.py": {
        "test_check_refuses_an_order_with_ties_and_its_remedy_settles_it": ("order-not-total",),
    },
    "tests/unit/app/test_held_calls.py": {
        "test_a_backfill_of_what_is_held_names_the_input_to_settle_and_settling_that_brings_it_along": (
            "held",
        ),
        "test_a_backfill_of_a_part_of_what_is_frozen_names_the_call_that_thaws_it": ("frozen",),
    },
    "tests/unit/dispatch/test_strict_incremental.py": {
        "test_every_remedy_of_the_refusal_gives_a_task_that_is_not_refused": ("strict-incremental",),
    },
    "tests/faults/test_remedies.py": {
        "test_a_lease_of_one_that_was_killed_runs_out_by_itself": ("lease-held",),
        "test_a_task_that_lost_every_race_is_done_by_the_next_run": ("conflict",),
        "test_a_table_deleted_under_its_task_is_rebuilt_by_the_next_run": ("table-replaced",),
        "test_a_source_deleted_under_its_task_comes_back_as_the_messages_say": ("source-lost",),
        "test_an_input_that_another_run_wrote_anew_is_read_whole_by_the_next_run": ("written-anew",),
        "test_a_run_that_was_closed_by_someone_else_is_followed_by_one_that_finds_nothing_lost": (
            "run-not-open",
        ),
    },
    "tests/spark/test_remedies.py": {
        "test_a_task_that_failed_is_done_after_the_edit_that_its_error_tells": (
            "sql-refused",
            "python-raised",
            "python-result",
            "key-not-in-result",
            "key-type",
            "key-not-unique",
            "parameter-type",
            "partition-type",
            "chain-types",
            "too-many-partitions",
            "unknown-encoding",
            "export-not-one-rank",
            "missing-column",
        ),
        "test_files_that_were_refused_are_received_once_they_are_written_as_their_errors_tell": (
            "not-text",
            "too-many-columns",
            "file-unreadable",
            "type-not-kept",
        ),
        "test_what_is_told_to_be_run_is_run_and_settles_it": (
            "never-built",
            "not-built",
            "file-changed",
            "counts-lost",
            "bad-share",
            "published-does-not-fit",
        ),
    },
    "tests/spark/test_timeline_remedies.py": {
        "test_a_timeline_is_whole_after_what_its_errors_tell": ("fold-failed", "reference-missing"),
    },
    "tests/spark/test_timeline_bad_input.py": {
        "test_each_mistake_is_told_and_after_its_remedy_nothing_is_lost": (
            "calendar-empty",
            "expression-raised",
        ),
    },
    "tests/spark/test_configurations.py": {
        "test_no_row_of_no_configuration_is_published_and_each_change_has_a_way_out": ("types-changed",),
    },
    "tests/spark/test_facts.py": {
        "test_the_guard_holds_back_a_snapshot_and_its_readers_until_it_is_accepted": (
            "guarded",
            "blocked",
        ),
        "test_a_release_leaves_a_fact_neither_in_both_tables_nor_in_neither": ("release-overtakes",),
    },
    "tests/spark/test_ingest.py": {
        "test_a_rewritten_file_fails_its_source_alone_until_its_next_revision_is_asked_for": (
            "file-rewritten",
        ),
    },
    "tests/faults/test_protocol.py": {
        "test_a_foreign_commit_in_the_middle_of_a_task_is_noticed_and_repaired": ("foreign-commit",),
        "test_a_writer_that_lost_its_lease_changes_nothing_visible": ("fenced",),
    },
    "tests/faults/test_processes.py": {
        "test_a_full_disk_is_said_and_after_making_room_the_next_run_goes_on": ("disk-full",),
        "test_a_second_process_is_told_who_holds_the_lake": ("lake-held",),
    },
    "tests/faults/test_live_faults.py": {
        "test_a_jvm_killed_under_a_run_is_told_and_the_next_run_ends_right": ("spark-lost",),
    },
}
"""By file and test: the slugs that the test provokes. It then does what the remedy says."""
EXECUTED: Mapping[str, str] = {
    slug: f"{file}::{test}"
    for file, tests in _TESTS.items()
    for test, slugs in tests.items()
    for slug in slugs
}

_MACHINE = "the remedy is outside the project: Java, the network, another version of Strandline"
_DEAD_SPARK = (
    "the remedy is to run again; tests/faults has runs after every way in which Spark or a process ends"
)
_ANY_ADDRESS = "any right address settles it, and every other test of a catalog has one"
_WITHOUT_SLUG = "`doctor` shows it without its slug; tests/unit/cli/test_doctor.py does what it says"
_HELD_FIRST = "readers of such a table are held before this can happen"
_HASHES = "no two partition names with the same 64-bit hash are known"
_VANISHES = "the table vanishes between two steps of a task; one that vanished before is `table-replaced`"
_REMOTE = "the lake is in an object store, and no test has one"
_SAME_VERSION = "a server and a command line of one version understand each other"
_OTHER_USER = "the remedy is to be another user of the machine"
_BY_ITSELF = "the server takes another id by itself"
NOT_EXECUTED: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "catalog-newer",
            "java-missing",
            "jar-folder-not-writable",
            "jars-not-resolved",
            "jar-with-wrong-checksum",
            "jars-missing",
            "spark-start",
        ),
        _MACHINE,
    ),
    "spark-failed": _DEAD_SPARK,
    "other-version": _MACHINE,
    "handover-refused": _SAME_VERSION,
    "server-of-another-user": _OTHER_USER,
    "request-exists": _BY_ITSELF,
    "lake-unwritable": _MACHINE,
    "unexpected": _MACHINE,
    "catalog-address": _ANY_ADDRESS,
    "outside": _WITHOUT_SLUG,
    "fresh-needs-local-lake": _REMOTE,
    "column-not-built": _HELD_FIRST,
    "partitions-collide": _HASHES,
    "table-missing": _VANISHES,
}
"""No test applies the remedy of these slugs, for the reason given."""


def test_every_slug_has_a_remedy_that_is_tried_or_a_reason_why_it_is_not() -> None:
    written = find_errors()
    listed = [*EXECUTED, *NOT_EXECUTED]

    assert [slug for slug in written if slug not in listed] == []
    assert [slug for slug in listed if slug not in written] == []
    assert len(listed) == len(set(listed))


@cache
def _parse(file: str) -> tuple[str, ast.Module]:
    text = (ROOT / file).read_text()
    return text, ast.parse(text)


@cache
def find_test(place: str) -> str | None:
    """The text of a test with its decorators and the tables at the top of the file that they use.

    None if there is no such test.
    """
    file, _, name = place.partition("::")
    text, module = _parse(file)
    test = next(
        (node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == name), None
    )
    if test is None:
        return None
    parts: list[ast.AST] = [test, *test.decorator_list]
    for part in parts:  # the list grows during the loop
        named = {node.id for node in ast.walk(part) if isinstance(node, ast.Name)}
        tables = [
            node
            for node in module.body
            if isinstance(node, ast.Assign | ast.AnnAssign) and named & set(_targets(node))
        ]
        parts += [node for node in tables if node not in parts]
    return "\n".join(ast.get_source_segment(text, part) or "" for part in parts)


def _targets(node: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


@pytest.mark.parametrize("slug", EXECUTED)
def test_the_test_that_tries_a_remedy_is_there_and_speaks_of_it(slug: str) -> None:
    text = find_test(EXECUTED[slug])

    assert text is not None, f"there is no {EXECUTED[slug]}"
    assert re.search(rf"(?<![\w-]){slug}(?![\w-])", text), f"{EXECUTED[slug]} does not speak of {slug}"
