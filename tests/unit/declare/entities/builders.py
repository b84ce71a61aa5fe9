"""The project of LANGUAGE's section on entities."""

from pathlib import Path

from strandline.model.entity import Entity
from tests.unit.declare.builders import load

BASE = """\
project: profiles
timezone: Europe/Berlin
sources:
  source_events: {files: "s/*.jsonl"}
  track_events: {files: "t/*.jsonl"}
  contract_events: {files: "c/*.jsonl"}
  account_events: {files: "a/*.jsonl"}
  call_events: {files: "l/*.jsonl"}
  transfer_events: {files: "x/*.jsonl"}
datasets:
  app_sources:
    from: source_events
    columns:
      id: id
      workspaceid: workspaceId
      name: name
      type: type
      deleted: deleted
      created_at: {path: createdAt, type: timestamp}
      updated_at: {path: updatedAt, type: timestamp}
    contract: {is_append_only: true, override_channel: id, override_ordering: updated_at}
  app_tracks:
    from: track_events
    columns:
      workspace_id: workspaceId
      user_id: userId
      sent_at: {path: sentAt, type: timestamp}
      amount: {path: amount, type: "decimal(18,2)"}
    event_stream: {identity: [user_id, sent_at]}
  contracts:
    from: contract_events
    columns:
      contract_id: id
      workspace_id: workspaceId
      amount: {path: amount, type: "decimal(18,2)"}
      renews_at: {path: renewsAt, type: timestamp}
      signed_on: {path: signedOn, type: date}
      changed_at: {path: changedAt, type: timestamp}
    record_set: {key: [contract_id], order_by: [changed_at]}
  sf_account:
    from: account_events
    columns: {id: id, organization_id: organizationId, changed_at: {path: at, type: timestamp}}
    record_set: {key: [id], order_by: [changed_at]}
  calls:
    from: call_events
    columns: {call_id: id, salesforce_id: salesforceId, at: {path: at, type: timestamp}}
    event_stream: {identity: [call_id]}
  transfers:
    from: transfer_events
    columns: {payer: payer, payee: payee, amount: {path: amount, type: bigint}}
jobs:
  - name: large
    input_datasets: [workspace]
    output_dataset: large_workspaces
    incremental: {mode: keyed, key: [workspace_id]}
    sql: SELECT workspace_id, live_sources FROM workspace WHERE live_sources > 9
"""
ENTITIES = """\
entities:
  workspace:
    id: workspace_id
    by: {app_sources: workspaceid}
    every: day
    variables:
      live_sources:  {from: app_sources, select: "count(id)", where: "deleted = 'FALSE'"}
      source_types:  {from: app_sources, select: "count(distinct type)", where: "deleted = 'FALSE'"}
      newest_source: {from: app_sources, select: "latest(name)"}
      tracks:       {from: app_tracks, select: "count(*)", window: {column: sent_at, last: [7 days, 30 days]}}
      users_30d:
        from: app_tracks
        select: approx_count_distinct(user_id)
        window: {column: sent_at, last: 30 days}
      renewals_due:
        from: contracts
        select: count(*)
        where: "renews_at >= :as_of AND renews_at < :as_of + INTERVAL 30 DAYS"
      arr:           {from: contracts, select: "sum(amount)", default: 0}
      pace:          {expr: "tracks_7d / nullif(tracks_30d, 0)"}
    groups:
      - from: app_sources
        where: "deleted = 'FALSE'"
        window: {column: created_at, last: [7 days, 90 days]}
        variables: {created: "count(*)", web_created: {select: "count(*)", where: "type = 'web'"}}
  account:
    id: organization_id
    by: {calls: {via: sf_account, on: {salesforce_id: id}}, workspace: workspace_id}
    variables:
      sources:  {from: workspace, select: "sum(live_sources)"}
      paid:     {from: transfers, by: payer, select: "sum(amount)"}
      received: {from: transfers, by: payee, select: "sum(amount)"}
      calls:    {from: calls, select: "count(*)"}
"""
PROJECT = BASE + ENTITIES


def edited(old: str, new: str, project: str = PROJECT) -> str:
    assert old in project, f"the project has no {old!r}"
    return project.replace(old, new)


def load_entity(folder: Path, name: str, project: str = PROJECT) -> Entity:
    entity = load(folder, project).get(name).definition
    assert isinstance(entity, Entity)
    return entity
