/** `agent check`: what was found out of a server that speaks REST, and the releases that it fits (docs/rest.md). */
import { type KeptHabits, RestHabits } from '../../remote/rest/habits.ts';
import { byDecoder, type Decoder, formOfNames, releasesFitting, spansOf } from '../../remote/rest/releases-fitting.ts';
import { systemClock } from '../../system/clock.ts';
import { type Finding, note, ok } from './findings.ts';

const DECODERS: Readonly<Record<Decoder, string>> = {
  blocks: 'in blocks of 1,024 bytes',
  stream: 'by one decoder to its end',
};

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
    note(decodingOf(fitting)),
  ];
}

function decodingOf(releases: readonly string[]): string {
  const decoders = byDecoder(releases);
  const [only] = decoders;
  if (only === undefined) return 'which decoder makes the text of live files, each answer shows';
  if (decoders.length === 1) return `text of live files is decoded ${DECODERS[only[0]]}`;
  const each = decoders.map(([decoder, those]) => `${DECODERS[decoder]} (${spansOf(those)})`);
  return `text of live files is decoded ${each.join(', or ')}: each answer shows which it is`;
}
