//! What comes of asking a stock.

/// The reaction to an ask: `S` is the supply that answers it, `U` material that is taken out to sign.
#[derive(Debug)]
pub enum Served<S, U> {
    /// No answer is due.
    Done,
    /// The answer.
    Supply(S),
    /// Material that is taken out to sign. `into()` is the answer once it is certain that it never signs again; otherwise its `refused` is.
    Used(U),
}

impl<S, U> Served<S, U> {
    /// The same of material of any scheme.
    pub(crate) fn map<T, V>(self, supply: impl FnOnce(S) -> T, used: impl FnOnce(U) -> V) -> Served<T, V> {
        match self {
            Self::Done => Served::Done,
            Self::Supply(answer) => Served::Supply(supply(answer)),
            Self::Used(material) => Served::Used(used(material)),
        }
    }
}
