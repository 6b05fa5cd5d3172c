//! Serves metrics of made-up networks, to see what a database does with them.

use std::{
    net::SocketAddr,
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;
use pping::{
    http::{Access, Contents, Readiness, Server},
    metrics::Metrics,
    recent::{self, RecentHistory},
};

use crate::networks::slices;

/// Serves until killed. Each second adds `step` seconds of traffic.
pub(crate) fn serve(address: SocketAddr, groups: u32, step: u64) -> Result<()> {
    let metrics = Metrics::new(groups, Duration::from_mins(10));
    let _server = Server::start(
        address,
        Access::default(),
        Contents::new(metrics.clone(), RecentHistory::new(recent::MEMORY), Readiness::default()),
    )?;
    println!("serving {groups} groups at http://{address}/metrics");
    let start = Instant::now();
    for second in 1_u32.. {
        for part in 0..step {
            metrics.add(&slices(groups, u64::from(second) * step + part), Instant::now());
        }
        thread::sleep((start + second * Duration::from_secs(1)).saturating_duration_since(Instant::now()));
    }
    Ok(())
}
