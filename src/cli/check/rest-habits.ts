/** `agent check`: what was found out of a server that speaks REST, and the releases that it fits (docs/rest.md). */
import { type KeptHabits, RestHabits } from '../../remote/rest/habits.ts';
import { decoderOf, formOfNames, releasesFitting, spansOf } from '../../remote/rest/releases-fitting.ts';
import { systemClock } from '../../system/clock.ts';
import { type Finding, note, ok } from './findings.ts';

const DECODERS = {
  blocks: 'text of live files is decoded in blocks of 1,024 bytes',
  stream: 'text of live files is decoded by one decoder to its end',
} as const;

const ASKED = {
  listed: 'by their listed names',
  'below the job': 'by their listed names below the id of the job',
} as const;

/** By what is kept of it, and the names that it has just listed. */
export function restHabitsOf(kept: KeptHabits, names: readonly string[]): Finding[] {
  const habits = new RestHabits({ kept, onChange: () => {}, now: systemClock.monotonic });
  const { addresses, pathForm, partsBytes } = habits.known;
  const form = formOfNames(names);
  const fitting = releasesFitting([...addresses, ...[pathForm, form].filter((habit) => habit !== undefined)]);
  const decoder = decoderOf(fitting);
  return [
    fitting.length === 0
      ? note('what was found fits no release that is known: the agent goes by the answers alone')
      : ok(`what was found fits the releases ${spansOf(fitting)}`),
    ...addresses.map((address) => note(address)),
    note(
      pathForm === undefined
        ? 'how files are asked for is not known yet: none was fetched'
        : `files are asked for ${ASKED[pathForm]}`,
    ),
    note(`requests for parts have at most ${partsBytes} bytes`),
    note(decoder === undefined ? 'which decoder makes the text of live files, each answer shows' : DECODERS[decoder]),
  ];
}
