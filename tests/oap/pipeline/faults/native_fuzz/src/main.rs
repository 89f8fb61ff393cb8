//! libFuzzer over `ptars-core`, the native decoder that the wheel of ptars wraps.
//!
//! The first byte of an input says which message it is, of those in the directory SHAPES; the rest
//! is one payload, decoded twice behind an empty one, as in a batch. The analysis survives a panic:
//! it is caught here as there, and its place is printed once. What ends the program (a signal, an
//! address error, a loop, memory without end) is a finding.

#![no_main]

use std::collections::HashSet;
use std::panic::{catch_unwind, set_hook, AssertUnwindSafe};
use std::sync::{Mutex, OnceLock};

use arrow_array::BinaryArray;
use libfuzzer_sys::fuzz_target;
use prost_reflect::{DescriptorPool, MessageDescriptor};
use ptars_core::{binary_array_to_record_batch_direct, PtarsConfig};

static MESSAGES: OnceLock<Vec<MessageDescriptor>> = OnceLock::new();
static PANICS: Mutex<Option<HashSet<String>>> = Mutex::new(None);

/// Reads the directory of SHAPES: `<number>.pb` is a FileDescriptorSet, `<number>.name` its message.
fn messages() -> Vec<MessageDescriptor> {
    let directory = std::path::PathBuf::from(std::env::var("SHAPES").expect("SHAPES is not set"));
    (0..)
        .map(|number| directory.join(format!("{number}.pb")))
        .take_while(|path| path.exists())
        .map(|path| {
            let name = std::fs::read_to_string(path.with_extension("name")).expect("a name");
            let pool = DescriptorPool::decode(&*std::fs::read(&path).expect("a set")).expect("a pool");
            pool.get_message_by_name(name.trim()).expect("a message")
        })
        .collect()
}

fn print_panics_once() {
    set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let mut seen = PANICS.lock().unwrap();
        if seen.get_or_insert_with(HashSet::new).insert(place.clone()) {
            eprintln!("PANIC at {place}");
        }
    }));
}

fuzz_target!(
    init: {
        let _ = MESSAGES.set(messages());
        print_panics_once();
    },
    |data: &[u8]| {
        let messages = MESSAGES.get().expect("initialized");
        let Some((first, payload)) = data.split_first() else { return };
        let message = &messages[usize::from(*first) % messages.len()];
        let batch = BinaryArray::from(vec![&b""[..], payload, payload]);
        let config = PtarsConfig::default().with_list_value_name("element");
        let _ = catch_unwind(AssertUnwindSafe(|| {
            binary_array_to_record_batch_direct(&batch, message, &config).map(|rows| rows.num_rows())
        }));
    }
);
