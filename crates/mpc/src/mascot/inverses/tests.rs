//! A party that lies about what an element is made of: nobody has the element then.

mod together;

use theta_groups::{Group, P256, Scalar as _};
use theta_rounds::Abort;

use super::super::MascotOf;
use crate::program::among;
use crate::{BlackBox, Inverses, Party, Sacrifice, Stop};

type S = <P256 as Group>::Scalar;

/// What happens to the second of three values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    Nothing,
    /// Party 1 has shown its summand of c last, and made c zero.
    Zero,
    /// The same, where nobody ends for it: then party 1 chooses the element.
    ChosenElement,
    /// It has made c another number.
    Product,
    /// It shows another summand of the element than its own.
    Element,
    /// It has given another number a MAC than its summand of a. That is nothing to the element, which is the inverse of what has the MAC.
    Factor,
}

/// Three values with their inverses; whether they are.
async fn inverses(party: Party, lie: Lie) -> Result<bool, Stop> {
    let black_box = MascotOf::<P256, Sacrifice>::new(&party).await?;
    let is_liar = party.position() == 0;
    let mut masked = black_box.make(3, 1).await?;
    let second = &mut masked.expose_mut()[1];
    match lie {
        Lie::Zero | Lie::ChosenElement => second.product = S::ZERO,
        Lie::Product => second.product += S::ONE,
        Lie::Nothing | Lie::Element | Lie::Factor => (),
    }
    if is_liar && lie == Lie::Element {
        second.mask += S::ONE;
    }
    if is_liar && lie == Lie::Factor {
        second.factor.value += S::ONE;
    }
    let elements = if lie == Lie::ChosenElement {
        let own = masked.expose().iter().map(|it| {
            let inverse = if it.product == S::ZERO { S::ZERO } else { it.product.invert() };
            let chosen = if is_liar && it.product == S::ZERO { P256::generator() } else { P256::identity() };
            P256::mul_base(&(it.mask * inverse)) + chosen
        });
        black_box.check_inverses(masked.expose(), own.collect()).await?
    } else {
        black_box.show_inverses(masked.expose()).await?
    };
    let values = crate::Shared::from_cells(masked.expose().iter().map(|it| [it.factor.value, it.factor.mac]));
    let opened = black_box.open(&values).await?;
    Ok(elements.iter().zip(opened).all(|(element, value)| *element * value == P256::generator()))
}

#[test]
fn elements_are_of_inverses_or_nobody_has_them() {
    const MACS: &str = "the MACs of what was opened fail their check";
    for n in [2, 3] {
        let report = among((n, n), 1, |party| Box::pin(inverses(party, Lie::Nothing)));
        assert!(report.agreed(|right| *right).unwrap());
        let found = [
            (Lie::Zero, "a masked product is zero"),
            (Lie::ChosenElement, MACS),
            (Lie::Product, MACS),
            (Lie::Element, MACS),
            (Lie::Factor, MACS),
        ];
        for (lie, how) in found {
            for (_, party) in among((n, n), 2, move |party| Box::pin(inverses(party, lie))).honest() {
                assert_eq!(party.result, Some(Err(Abort::Cheated(how))), "{lie:?} among {n}");
            }
        }
    }
}

/// Values that were made beside others come before new ones, each once.
#[test]
fn what_is_in_reserve_is_used_once() {
    let report = among((2, 2), 1, |party| {
        Box::pin(async move {
            let black_box = MascotOf::<P256, Sacrifice>::new(&party).await?;
            let random = black_box.random(2).await?;
            let Inverses { values: first, elements, .. } = black_box.inverses(1).await?;
            let Inverses { values: others, elements: more, .. } = black_box.inverses(10).await?;
            let again = black_box.random(270).await?;
            let values = black_box.open(&random.then(&first).then(&others).then(&again)).await?;
            let distinct: std::collections::BTreeSet<[u8; 32]> = values.iter().map(|it| it.encode()).collect();
            let with_elements = values[2..13].iter().zip(elements.iter().chain(&more));
            let are_inverses = with_elements.clone().all(|(a, element)| *element * *a == P256::generator());
            Ok((values.len(), distinct.len(), with_elements.count(), are_inverses))
        })
    });
    assert_eq!(report.agreed(|it| *it), Ok((283, 283, 11, true)));
}
