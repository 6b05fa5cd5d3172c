//! Whatever the user asks for, the verifier takes the programs, and they work.

use pping::source::load::{self, Kernel, Settings};
use pping_common::{
    parse::LinkType,
    rtt::{Basis, Rules},
};

use super::{
    frames::{echo, v4, v6},
    rig::{Program, Rig, SETTINGS, samples},
};

/// Half of what the kernel allows: what the next compiler does with the same source is not known.
const BUDGET: u32 = 500_000;

const PROGRAMS: [&str; 4] = ["pping_xdp", "pping_ingress", "pping_egress", "pping_sweep"];

fn assert_within_budget(kernel: &mut Kernel, settings: &Settings) {
    for name in PROGRAMS {
        let info = match name {
            "pping_xdp" => load::xdp(&mut kernel.programs).unwrap().info(),
            "pping_sweep" => load::sweep(&mut kernel.programs).unwrap().info(),
            _ => load::classifier(&mut kernel.programs, name).unwrap().info(),
        };
        let verified = info.unwrap().verified_instruction_count().unwrap();
        assert!(verified > 0 && verified < BUDGET, "{name}: {verified} with {settings:?}");
    }
}

#[test]
fn the_programs_load_within_the_budget_and_work_with_every_combination_of_settings() {
    for rate_limit in [0, 100_000_000] {
        for (rtt_rate, rtt_basis) in [(0, Basis::Smoothed), (1 << 16, Basis::Smoothed), (1 << 15, Basis::Min)]
        {
            for include_local in [false, true] {
                for log in [false, true] {
                    let rules = Rules { rate_limit, rtt_rate, rtt_basis, include_local, reserved: [0; 3] };
                    let settings = Settings { rules, log, ..SETTINGS };
                    let mut rig = Rig::with(settings, LinkType::Ethernet);
                    assert_within_budget(&mut rig.kernel, &settings);
                    for [a, b] in [[v4(1), v4(2)], [v6(1), v6(2)]] {
                        rig.send(Program::Egress, &echo(a, b, 1, 1, false));
                        rig.send(Program::Xdp, &echo(b, a, 1, 1, true));
                        rig.send(Program::Ingress, &echo(b, a, 2, 1, false));
                        rig.send(Program::Egress, &echo(a, b, 2, 1, true));
                    }
                    rig.sweep();
                    assert_eq!(samples(&rig.agree(&format!("{settings:?}"))).len(), 4);
                }
            }
        }
    }
}
