//! Groups that change while pping measures: `--groups-socket` and `pping groups`.

mod bad_input;
mod changes;
mod client;
mod columns;
mod kept;
mod leases;
mod radius;
mod sessions;
mod shaped_devices;
