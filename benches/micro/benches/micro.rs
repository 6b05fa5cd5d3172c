//! Times each case: `cargo bench --package pping-micro-benches`.

use criterion::Criterion;
use pping_micro_benches::timed;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    for mut case in timed() {
        criterion.bench_function(case.name, |bencher| bencher.iter(&mut case.run));
    }
    criterion.final_summary();
}
