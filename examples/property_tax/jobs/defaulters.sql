-- Active properties that owe something, with whom to write to.
WITH current_owners AS (
  SELECT tenant_id, property_id, min(name) AS first_owner, count(*) AS owners
  FROM owner
  WHERE status = 'ACTIVE'
  GROUP BY tenant_id, property_id
)
SELECT
  property.tenant_id,
  property.property_id,
  property.usage_category,
  current_owners.first_owner,
  current_owners.owners,
  address.locality,
  property_outstanding.outstanding,
  property_outstanding.unpaid_since
FROM property
JOIN property_outstanding
  ON property_outstanding.tenant_id = property.tenant_id
  AND property_outstanding.property_id = property.property_id
LEFT JOIN current_owners
  ON current_owners.tenant_id = property.tenant_id
  AND current_owners.property_id = property.property_id
LEFT JOIN address
  ON address.tenant_id = property.tenant_id
  AND address.property_id = property.property_id
WHERE property.status = 'ACTIVE' AND property_outstanding.outstanding > 0
