-- What people asked to be told of: large transactions, and blocks that were hard to find, whose alerts name no transaction.
SELECT
  alert_definitions.alert_definition_id,
  hot_transactions.block_hash,
  hot_transactions.tx_hash,
  hot_transactions.block_number,
  hot_transactions.value AS amount
FROM hot_transactions
JOIN alert_definitions
  ON alert_definitions.kind = 'large_transaction'
  AND hot_transactions.value >= alert_definitions.threshold
UNION ALL
SELECT
  alert_definitions.alert_definition_id,
  hot_blocks.block_hash,
  CAST(NULL AS STRING) AS tx_hash,
  hot_blocks.block_number,
  CAST(hot_blocks.difficulty AS DECIMAL(38, 0)) AS amount
FROM hot_blocks
JOIN alert_definitions
  ON alert_definitions.kind = 'block_difficulty'
  AND CAST(hot_blocks.difficulty AS DECIMAL(38, 0)) >= alert_definitions.threshold
