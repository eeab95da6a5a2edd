//! An Ethereum virtual machine with one contract.

use revm::bytecode::Bytecode;
use revm::context::TxEnv;
use revm::database::{CacheDB, EmptyDB};
use revm::primitives::{Address, Bytes, TxKind};
use revm::state::AccountInfo;
use revm::{Context, ExecuteEvm, MainBuilder, MainContext};

/// The outcome of a transaction.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) output: Vec<u8>,
    /// The gas used by the whole transaction.
    pub(crate) gas: u64,
}

/// What a contract of the machine's own answers to call data.
pub(crate) fn precompiled(address: Address, call_data: &[u8]) -> Vec<u8> {
    let transaction = TxEnv::builder()
        .caller(Address::repeat_byte(0xaa))
        .kind(TxKind::Call(address))
        .gas_limit(1_000_000)
        .data(Bytes::copy_from_slice(call_data))
        .build()
        .unwrap();
    let database = CacheDB::<EmptyDB>::default();
    let result = Context::mainnet().with_db(database).build_mainnet().transact(transaction).unwrap().result;
    assert!(result.is_success(), "{result:?}");
    result.into_output().unwrap().to_vec()
}

/// Sends call data to the contract in a transaction under the main network's present rules; `None` if it reverts.
pub(crate) fn transact(contract: &[u8], call_data: &[u8]) -> Option<Answer> {
    let address = Address::repeat_byte(0xcc);
    let mut database = CacheDB::<EmptyDB>::default();
    let code = Bytecode::new_raw(Bytes::copy_from_slice(contract));
    database.insert_account_info(address, AccountInfo::from_bytecode(code));
    let transaction = TxEnv::builder()
        .caller(Address::repeat_byte(0xaa))
        .kind(TxKind::Call(address))
        .gas_limit(5_000_000)
        .data(Bytes::copy_from_slice(call_data))
        .build()
        .unwrap();
    let result = Context::mainnet().with_db(database).build_mainnet().transact(transaction).unwrap().result;
    let gas = result.tx_gas_used();
    result.is_success().then(|| Answer { output: result.into_output().unwrap().to_vec(), gas })
}
