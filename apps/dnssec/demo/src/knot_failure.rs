//! What of Knot's failures whoever runs this can mend.

use theta::exit::Failure;
use theta_knot::KnotError;

pub(crate) fn failure(error: &KnotError) -> Failure {
    match error {
        // Who runs this can mend it.
        KnotError::Missing { .. } => Failure::Usage(error.to_string()),
        _ => Failure::Failed(error.to_string()),
    }
}
