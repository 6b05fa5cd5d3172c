//! Repeats each case so often that starting it does not matter, for `cargo xtask instructions` to count under
//! callgrind.
#![expect(clippy::print_stdout, reason = "the names of what is counted are for the program that counts")]

use pping_micro_benches::counted;

/// How often each case is repeated.
const TIMES: u32 = 1000;

fn main() {
    println!("{TIMES}");
    for mut case in counted() {
        println!("{}", case.name);
        // The first run does work that later ones do not.
        (case.run)();
        pping_counted(&mut case.run);
    }
}

/// Callgrind counts inside this function, which it finds by name.
#[inline(never)]
fn pping_counted(run: &mut dyn FnMut()) {
    for _ in 0..TIMES {
        run();
    }
}
