//! The blocking client, against real nodes.

use std::time::{Duration, Instant};

use bytes::Bytes;
use theta_client::{ClientError, ClientOptions, KeyState, blocking::Client};
use theta_payload::{Aead, Encrypt as _};

use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

use crate::group::{CIPHER, COIN, KEYS, SIGNER, TestGroup};

/// What a program without a runtime does.
fn work(group: &TestGroup) {
    let client = Client::open(&group.client_folder()).unwrap();
    let message = Bytes::from_static(b"without a runtime");
    let signed = client.sign(SIGNER, message.clone()).unwrap();
    group.public(SIGNER).verify(&message, &signed.result, &[]).unwrap();
    let coin = client.flip_coin(COIN, message.clone()).unwrap();
    group.public(COIN).verify(&message, &coin.result.value, &coin.result.proof).unwrap();
    let mut rng = ChaCha20Rng::seed_from_u64(6);
    let ciphertext = group.public(CIPHER).encrypt(&message, b"label", Aead::default(), &mut rng).unwrap();
    assert_eq!(client.decrypt(CIPHER, ciphertext.into()).unwrap().result.expose().as_slice(), &message[..]);
    assert!(client.status().iter().all(|status| status.status.is_ok()));
    let (keys, problems) = client.list_keys();
    assert_eq!((keys.len(), problems.len()), (KEYS.len(), 0));
    let error = client.sign("No Name", message).unwrap_err();
    assert!(matches!(error, ClientError::KeyName(_)), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_without_a_runtime_gets_the_same() {
    let group = TestGroup::new().await;
    let group = tokio::task::spawn_blocking(move || {
        // A thread that belongs to no runtime.
        std::thread::scope(|scope| scope.spawn(|| work(&group)).join().unwrap());
        group
    });
    group.await.unwrap().shutdown().await;
}

/// Calls from inside a runtime do not panic: they block that thread, as documented.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn inside_a_runtime_it_blocks_and_works() {
    let group = TestGroup::new().await;
    work(&group);
    let options = ClientOptions { connect_timeout: std::time::Duration::from_millis(500), ..ClientOptions::default() };
    let client = Client::open_with(&group.client_folder(), options).unwrap();
    let (copy, generation) = (client.clone(), client.next_generation(&SIGNER.parse().unwrap()).unwrap());
    drop(client);
    let error = copy.change_state_at("absent", None, KeyState::Disabled, generation).unwrap_err();
    assert!(matches!(error, ClientError::Refused { .. } | ClientError::Denied { .. } | ClientError::NoAnswer { .. }));
    group.shutdown().await;
}

/// A call ends when its time is over, whatever the nodes do, and the next one works.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_ends_with_its_time() {
    let group = TestGroup::new().await;
    let client = Client::open(&group.client_folder()).unwrap();
    let group = tokio::task::spawn_blocking(move || {
        let began = Instant::now();
        let limit = Duration::from_millis(50);
        assert!(client.within(limit, std::future::pending::<()>()).is_none());
        assert!(began.elapsed() >= limit && began.elapsed() < Duration::from_secs(5));
        let signed = client.within(Duration::from_secs(30), client.asynchronous().sign(SIGNER, "in time".into()));
        group.public(SIGNER).verify(b"in time", &signed.unwrap().unwrap().result, &[]).unwrap();
        group
    });
    group.await.unwrap().shutdown().await;
}
