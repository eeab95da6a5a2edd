//! What it costs that a share waits for its record: decryptions by 2 of 4 nodes in one process, over loopback.
//!
//! `cargo run -p theta-service --example record_cost` prints a table; the way before is `record = "soon"`.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a measurement that fails panics")]

#[path = "../tests/group/mod.rs"]
mod group;

use std::time::{Duration, Instant};

use bytes::Bytes;
use group::{CIPHER, TestGroup};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use theta_schemes::ciphers::payload::{Aead, split_ciphertext};
use theta_wire::v1::{self, threshold_protocol_client::ThresholdProtocolClient};
use tokio::task::JoinSet;
use tonic::transport::Channel;

type Clients = Vec<ThresholdProtocolClient<Channel>>;

/// Asks all nodes and takes the first result.
async fn open(clients: Clients, header: Bytes) -> Duration {
    let begin = Instant::now();
    let mut asked = JoinSet::new();
    for mut client in clients {
        let request = v1::DecapsulateRequest { key: CIPHER.to_owned(), header: header.clone(), ..Default::default() };
        asked.spawn(async move { client.decapsulate(request).await });
    }
    asked.join_next().await.unwrap().unwrap().unwrap();
    let took = begin.elapsed();
    // The others end on their own.
    asked.detach_all();
    took
}

fn print(word: &str, how: &str, mut took: Vec<Duration>, all: Duration) {
    took.sort_unstable();
    let at = |percent: usize| took[(took.len() - 1) * percent / 100].as_secs_f64() * 1e3;
    let rate = took.len() as f64 / all.as_secs_f64();
    println!("{word:<8} {how:<12} {:>8.2} ms {:>8.2} ms {rate:>8.0}/s", at(50), at(95));
}

#[tokio::main]
async fn main() {
    println!("record   how               p50         p95     rate");
    for word in ["soon", "first", "soon", "first"] {
        let group = TestGroup::new().await;
        let policy = group.client_folder().parent().map(|folder| folder.join("node-1/policy.toml")).unwrap();
        let policy = std::fs::read_to_string(policy).unwrap() + &format!("record = \"{word}\"\n");
        group.set_policies(&policy).await;
        let mut clients = Vec::new();
        for id in 1..=4 {
            clients.push(ThresholdProtocolClient::new(group.channel(id).await));
        }
        let (public, mut rng) = (group.public(CIPHER), ChaCha20Rng::seed_from_u64(1));
        let mut headers = (0..1_500).map(|_| {
            let sealed = Bytes::from(public.encrypt(b"x", b"", Aead::ChaCha20Poly1305, &mut rng).unwrap());
            sealed.slice_ref(split_ciphertext(&sealed).unwrap().0)
        });
        for header in headers.by_ref().take(30) {
            open(clients.clone(), header).await;
        }
        let (begin, mut took) = (Instant::now(), Vec::new());
        for header in headers.by_ref().take(300) {
            took.push(open(clients.clone(), header).await);
        }
        print(word, "one by one", took, begin.elapsed());
        let (rest, mut took, mut running) = (headers.collect::<Vec<_>>(), Vec::new(), JoinSet::new());
        let begin = Instant::now();
        for header in rest {
            if running.len() == 64 {
                took.push(running.join_next().await.unwrap().unwrap());
            }
            running.spawn(open(clients.clone(), header));
        }
        took.extend(running.join_all().await);
        print(word, "64 at a time", took, begin.elapsed());
        group.shutdown().await;
    }
}
