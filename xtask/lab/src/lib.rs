//! Hosts, wires that hold frames, and traffic for tests, benches and the demo.
