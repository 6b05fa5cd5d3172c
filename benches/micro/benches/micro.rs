//! Times each case: `cargo bench --package pping-micro-benches`.

use criterion::Criterion;
use pping_micro_benches::cases;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut cases = cases();
    #[cfg(feature = "agent")]
    cases.extend(pping_micro_benches::of_agent());
    for mut case in cases {
        criterion.bench_function(case.name, |bencher| bencher.iter(&mut case.run));
    }
    criterion.final_summary();
}
