//! Checks `--otlp`.

use super::{name::Name, report::Check};
use crate::{config::Otlp, otlp::Receiver};

/// Checks that the receiver answers a request without metrics.
pub(super) async fn otlp(settings: &Otlp) -> Check {
    let receiver = match Receiver::new(settings) {
        Ok(receiver) => receiver,
        Err(error) => {
            return Check::missing(
                Name::Otlp,
                error.to_string(),
                "correct this: pping does not start with it",
            );
        }
    };
    let url = &settings.endpoint;
    match receiver.probe().await {
        Ok(()) => Check::ok(Name::Otlp, format!("{url} accepts metrics")),
        Err(reason) => Check::degraded(
            Name::Otlp,
            format!("{url}: {reason}"),
            "start the receiver, or correct --otlp, --otlp-ca or --otlp-headers: until then pping measures, and what \
             it cannot push is kept for a while, then dropped",
        ),
    }
}
