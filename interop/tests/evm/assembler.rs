//! A small assembler, sufficient for a verifier: code without loops, whose only jumps lead to the refusal at its beginning,
//! with every intermediate value in a memory word of its own.

/// The modulus of the field of BN254's coordinates.
pub(crate) const P: &str = "30644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd47";
/// p - 2: raising to this power inverts.
const INVERT: &str = "30644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd45";
/// (p + 1) / 4: raising a square to this power gives a root.
const ROOT: &str = "0c19139cb84c680a6e14116da060561765e05aa45a1c72a34f082305b61f3f52";

/// Precompiled contracts, by address.
#[derive(Clone, Copy)]
pub(crate) enum Precompile {
    Sha256 = 2,
    /// EIP-198.
    ModExp = 5,
    /// EIP-196.
    EcAdd = 6,
    /// EIP-196.
    EcMul = 7,
    /// EIP-197.
    EcPairing = 8,
}

/// Instructions, with the names of the EVM's specification.
#[derive(Clone, Copy)]
pub(crate) enum Op {
    Add = 0x01,
    Sub = 0x03,
    AddMod = 0x08,
    MulMod = 0x09,
    Lt = 0x10,
    Eq = 0x14,
    IsZero = 0x15,
    And = 0x16,
    Or = 0x17,
    Xor = 0x18,
    Shr = 0x1c,
    CallDataSize = 0x36,
    CallDataCopy = 0x37,
    MLoad = 0x51,
    MStore = 0x52,
    JumpI = 0x57,
    Gas = 0x5a,
    Return = 0xf3,
    StaticCall = 0xfa,
}

/// The address of 32 bytes of memory.
#[derive(Clone, Copy)]
pub(crate) struct Word(pub(crate) u16);

/// The first address of intermediate values; the memory below is for [`Assembler::place`].
const WORDS: u16 = 0x800;
/// The address of the input of [`Precompile::ModExp`].
const POWER: u16 = 0x700;
/// The address of the code that refuses; the first instruction jumps over it.
const REFUSAL: u8 = 3;

pub(crate) struct Assembler {
    code: Vec<u8>,
    next: u16,
}

impl Assembler {
    pub(crate) fn new() -> Self {
        // PUSH1 start, JUMP, refusal: JUMPDEST, PUSH0, PUSH0, REVERT, start: JUMPDEST.
        Self { code: vec![0x60, 0x07, 0x56, 0x5b, 0x5f, 0x5f, 0xfd, 0x5b], next: WORDS }
    }

    pub(crate) fn op(&mut self, op: Op) -> &mut Self {
        self.code.push(op as u8);
        self
    }

    /// At most 32 bytes onto the stack.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> &mut Self {
        self.code.push(0x5f + u8::try_from(bytes.len()).unwrap());
        self.code.extend_from_slice(bytes);
        self
    }

    pub(crate) fn number(&mut self, number: u16) -> &mut Self {
        self.push(&number.to_be_bytes())
    }

    fn modulus(&mut self) -> &mut Self {
        self.push(&word(P))
    }

    pub(crate) fn load(&mut self, at: Word) -> &mut Self {
        self.number(at.0).op(Op::MLoad)
    }

    /// Takes what is on top of the stack into a new word.
    pub(crate) fn keep(&mut self) -> Word {
        let at = Word(self.next);
        self.next += 32;
        self.number(at.0).op(Op::MStore);
        at
    }

    pub(crate) fn constant(&mut self, hex: &str) -> Word {
        self.push(&word(hex)).keep()
    }

    /// Copies words to where a precompile reads them one after the other.
    pub(crate) fn place(&mut self, words: &[Word], at: u16) {
        for (number, &word) in (0..).zip(words) {
            self.load(word).number(at + 32 * number).op(Op::MStore);
        }
    }

    /// Bytes, a multiple of 32 of them, to a place in memory.
    pub(crate) fn place_bytes(&mut self, bytes: &[u8], at: u16) {
        for (number, word) in (0..).zip(bytes.chunks(32)) {
            self.push(word).number(at + 32 * number).op(Op::MStore);
        }
    }

    /// Reverts if what is on top of the stack is not zero.
    pub(crate) fn refuse_if(&mut self) -> &mut Self {
        self.push(&[REFUSAL]).op(Op::JumpI)
    }

    /// Calls with input of `len` bytes; reverts if the precompile refuses.
    pub(crate) fn call(&mut self, precompile: Precompile, from: u16, len: u16, to: u16, returned: u16) {
        self.number(returned).number(to).number(len).number(from);
        self.push(&[precompile as u8]).op(Op::Gas).op(Op::StaticCall).op(Op::IsZero).refuse_if();
    }

    /// Ends with these bytes of memory.
    pub(crate) fn give(mut self, from: u16, len: u16) -> Vec<u8> {
        self.number(len).number(from).op(Op::Return);
        self.code
    }

    pub(crate) fn mul(&mut self, a: Word, b: Word) -> Word {
        self.modulus().load(b).load(a).op(Op::MulMod).keep()
    }

    pub(crate) fn add(&mut self, a: Word, b: Word) -> Word {
        self.modulus().load(b).load(a).op(Op::AddMod).keep()
    }

    /// For b below p.
    pub(crate) fn sub(&mut self, a: Word, b: Word) -> Word {
        self.modulus().load(b).modulus().op(Op::Sub).load(a).op(Op::AddMod).keep()
    }

    /// The inverse, or 0 of 0.
    pub(crate) fn invert(&mut self, a: Word) -> Word {
        self.power(a, INVERT)
    }

    /// A square root, if there is one.
    pub(crate) fn root(&mut self, a: Word) -> Word {
        self.power(a, ROOT)
    }

    fn power(&mut self, base: Word, exponent: &str) -> Word {
        let len = self.push(&[32]).keep();
        let (exponent, modulus) = (self.constant(exponent), self.constant(P));
        self.place(&[len, len, len, base, exponent, modulus], POWER);
        self.call(Precompile::ModExp, POWER, 6 * 32, POWER, 32);
        self.load(Word(POWER)).keep()
    }

    /// 1 if they are equal, otherwise 0.
    pub(crate) fn equal(&mut self, a: Word, b: Word) -> Word {
        self.load(a).load(b).op(Op::Eq).keep()
    }

    /// The lowest bit.
    pub(crate) fn parity(&mut self, a: Word) -> Word {
        self.load(a).push(&[1]).op(Op::And).keep()
    }

    /// `a` if the flag is 1, `b` if it is 0.
    pub(crate) fn choose(&mut self, flag: Word, a: Word, b: Word) -> Word {
        let difference = self.sub(a, b);
        let difference = self.mul(flag, difference);
        self.add(b, difference)
    }
}

/// 32 bytes of 64 hexadecimal digits.
fn word(hex: &str) -> [u8; 32] {
    assert_eq!(hex.len(), 64);
    let digits = |at: usize| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap();
    core::array::from_fn(digits)
}
