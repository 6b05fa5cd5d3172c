//! The agent, as its users meet it.

mod it {
    mod agent;
}
