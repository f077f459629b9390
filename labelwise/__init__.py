"""Train one named-entity model from annotations made label by label, on a machine that stays small."""
