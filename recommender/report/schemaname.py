"""Names of the forms of JSON that are written; a change that breaks readers changes them."""

PLAN_SCHEMA = "recommend.plan/v1"
ERROR_SCHEMA = "recommend.error/v1"
SIMULATION_SCHEMA = "recommend.simulation/v1"
CALIBRATION_SCHEMA = "recommend.calibration/v1"
