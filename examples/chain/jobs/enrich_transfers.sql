-- Transfers of tokens that are worth a look, with when and by whom their block was found.
SELECT
  hot_logs.block_number,
  hot_logs.block_hash,
  hot_logs.tx_hash,
  hot_logs.log_index,
  hot_blocks.block_at,
  hot_blocks.miner,
  hot_logs.address AS token,
  hot_logs.from_address,
  hot_logs.to_address,
  hot_logs.amount
FROM hot_logs
JOIN hot_blocks
  ON hot_blocks.block_number = hot_logs.block_number
  AND hot_blocks.block_hash = hot_logs.block_hash
WHERE hot_logs.topic = 'Transfer' AND hot_logs.amount >= CAST(:min_amount AS DECIMAL(38, 0))
