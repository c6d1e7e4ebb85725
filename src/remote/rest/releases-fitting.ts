/** The releases that match the detected capabilities of a server: docs/rest.md as one table. */

/** The first of each row of releases that are alike. */
const RELEASES: readonly string[] = [
  ...['2.0', '2.1', '2.2', '3.0', '3.1', '4.0', '4.1', '4.2', '4.3'],
  ...['5.0', '6.0', '6.1', '6.2', '6.3', '6.4', '6.5'],
];

/** The first and the last release with this capability. */
type Span = readonly [from: string, to: string];

/** By the text of an address, a path form, or the form of listed names. Missing ones prove nothing. */
const SPANS: Readonly<Record<string, readonly Span[]>> = {
  // docs/rest.md 1.2
  'POST FileTransfer/ListChangedFilesForJob': [['2.0', '4.1']],
  'GET FileTransfer/ListChangedFilesForJob': [['4.0', '6.5']],
  'POST FileTransfer/GetFileTransferMethod': [
    ['2.0', '3.1'],
    ['4.1', '4.1'],
  ],
  'POST FileTransfer/RequestFileTransfer': [['4.0', '6.5']],
  'POST FileTransfer/EndFileTransfer': [
    ['2.0', '3.1'],
    ['4.1', '4.1'],
  ],
  'POST FileTransfer/CloseFileTransfer': [['4.0', '6.5']],
  'POST JobManagement/GetCurrentInfoForJob': [['2.0', '4.1']],
  'GET JobManagement/CurrentInfoForJob': [['4.0', '6.5']],
  'POST JobManagement/ListJobsForCurrentUser': [['2.0', '4.1']],
  'GET JobManagement/ListJobsForCurrentUser': [['4.0', '6.5']],
  // docs/rest.md 3.4
  listed: [
    ['2.0', '3.1'],
    ['4.1', '6.5'],
  ],
  'below the job': [
    ['4.0', '4.0'],
    ['4.3', '6.1'],
  ],
  'without a leading slash': [['2.0', '2.1']],
  'with a leading slash': [['2.2', '6.5']],
};

export type Decoder = 'blocks' | 'stream';

/** The last release that decodes text in blocks (docs/rest.md 3.2). */
const LAST_WITH_BLOCKS = '6.3';

/** The releases, in order, that have all of these capabilities. */
export function releasesFitting(habits: readonly string[]): string[] {
  const spans = habits.flatMap((habit) => (SPANS[habit] === undefined ? [] : [SPANS[habit]]));
  return RELEASES.filter((release) =>
    spans.every((alternatives) =>
      alternatives.some(([from, to]) => rank(from) <= rank(release) && isUpTo(release, to)),
    ),
  );
}

/** In words: `V2.0 to V3.1, V4.1`. */
export function spansOf(releases: readonly string[]): string {
  const runs: string[][] = [];
  for (const release of releases) {
    const last = runs.at(-1);
    if (last !== undefined && rank(last.at(-1) ?? '') + 1 === rank(release)) last.push(release);
    else runs.push([release]);
  }
  return runs.map((run) => (run.length === 1 ? `V${run[0]}` : `V${run[0]} to V${run.at(-1)}`)).join(', ');
}

/** The form of the names in a listing; undefined if they do not show it. */
export function formOfNames(names: readonly string[]): string | undefined {
  // Absolute paths, of a scratch directory that is a link, do not begin with a number.
  if (names.some((name) => /^\/\d+\/[^/]/.test(name))) return 'with a leading slash';
  return names.some((name) => /^\d+\//.test(name)) ? 'without a leading slash' : undefined;
}

/** The releases by how they decode live files; a decoder that none of them has is left out. */
export function byDecoder(releases: readonly string[]): [decoder: Decoder, releases: readonly string[]][] {
  const decoders: [Decoder, string[]][] = [
    ['blocks', releases.filter((release) => isUpTo(release, LAST_WITH_BLOCKS))],
    ['stream', releases.filter((release) => !isUpTo(release, LAST_WITH_BLOCKS))],
  ];
  return decoders.filter(([, those]) => those.length > 0);
}

const rank = (release: string) => RELEASES.indexOf(release);
const isUpTo = (release: string, last: string) => rank(release) <= rank(last);
