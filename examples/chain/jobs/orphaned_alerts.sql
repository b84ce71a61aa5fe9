-- Alerts whose block is no longer canonical, with the block that has its number now, if any.
SELECT
  alert_events.alert_definition_id,
  alert_events.block_hash,
  alert_events.tx_hash,
  alert_events.block_number,
  alert_events.amount,
  hot_blocks.block_hash AS canonical_hash
FROM alert_events
LEFT JOIN hot_blocks
  ON hot_blocks.block_number = alert_events.block_number
WHERE NOT (hot_blocks.block_hash <=> alert_events.block_hash)
