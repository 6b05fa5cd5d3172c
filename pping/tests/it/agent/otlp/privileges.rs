//! The thread that talks to the receiver has no capabilities.

use std::path::Path;

use super::{RECEIVING, Receiver, url};
use crate::agent::{
    host::Host,
    monitor::{interrupt, wait_until, watch},
    web::privileges::threads,
};

#[test]
fn otlp_the_thread_that_pushes_has_no_capabilities() {
    let host = Host::new();
    let receiver = Receiver::start(&host.namespace);
    let options = format!("--format none --otlp-interval 1s {}", url(RECEIVING));
    let pping = watch(&host.namespace, Host::ETH, &options);
    wait_until("points", || !receiver.points().is_empty());
    let threads = threads(Path::new(&format!("/proc/{}/task", pping.id())));
    let pusher = threads.iter().find(|(name, _)| name == "pping-otlp");
    let (_, sets) = pusher.unwrap_or_else(|| panic!("no pping-otlp in {threads:?}"));
    assert_eq!(*sets, vec!["0000000000000000".to_owned(); 4]);
    interrupt(pping);
}
