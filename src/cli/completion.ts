/** Completion: the scripts for shells, and the words that they ask this program for. */
import type { Command } from 'commander';
import type { ConfigOption } from './configuration.ts';
import { isConfig } from './words.ts';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
/** Followed by the words of a line up to the one to be completed. */
export const COMPLETE = '__complete';

const SCRIPTS: Readonly<Record<(typeof SHELLS)[number], string>> = {
  bash: `_agent() {
  mapfile -t COMPREPLY < <("\${COMP_WORDS[0]}" ${COMPLETE} "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f 1)
}
complete -o default -F _agent agent jobtail
`,
  zsh: `#compdef agent jobtail
_agent() {
  local -a found
  found=(\${(f)"$(\${words[1]} ${COMPLETE} "\${(@)words[2,CURRENT]}" 2>/dev/null)"})
  found=(\${\${found//:/\\\\:}//$'\\t'/:})
  if (( $#found )); then _describe agent found; else _files; fi
}
if [ "$funcstack[1]" = _agent ]; then _agent "$@"; else compdef _agent agent jobtail; fi
`,
  fish: `function __agent
  set -l line (commandline -opc)
  set -l word (commandline -ct)
  set -l found ($line[1] ${COMPLETE} $line[2..] "$word" 2>/dev/null)
  if test (count $found) -gt 0
    string join -- \\n $found
  else
    __fish_complete_path $word
  end
end
complete -c agent -f -a '(__agent)'
complete -c jobtail -w agent
`,
};

export const completionScript = (shell: (typeof SHELLS)[number]): string => SCRIPTS[shell];

/** Prints each word that may be the last one, and its description after a tab. Without one, the shell offers files. */
export async function complete(program: Command, words: readonly string[]): Promise<void> {
  const last = words.at(-1) ?? '';
  const found = (await candidates(program, words)).filter(([word]) => word.startsWith(last));
  process.stdout.write(found.map(([word, description]) => `${word}\t${description}\n`).join(''));
}

type Candidate = readonly [word: string, description: string];

async function candidates({ commands }: Command, line: readonly string[]): Promise<Candidate[]> {
  const named = (word: string): Candidate => [word, ''];
  const at = line.slice(0, -2).findIndex((word) => isConfig(word));
  const words = at < 0 ? line : line.toSpliced(at, 2);
  if (words.length < 2)
    return [
      ...commands.map((one): Candidate => [one.name(), one.description()]),
      ...['--help', '--version'].map(named),
    ];
  const command = commands.find((one) => one.name() === words[0]);
  if (command === undefined) return [];
  // With --help, which commander keeps separately.
  const options = command.createHelp().visibleOptions(command);
  const before = words.at(-2);
  const open = options.find(({ short, long, required }) => required && (short === before || long === before));
  if (open !== undefined) return (open.argChoices ?? []).map(named);
  if (words.at(-1)?.startsWith('-'))
    return options.flatMap(({ short, long, description }) =>
      [short, long].flatMap((flag): Candidate[] => (flag === undefined ? [] : [[flag, description]])),
    );
  const args = command.registeredArguments;
  const jobs = args.some((argument) => argument.name() === 'job')
    ? await followedJobs(at < 0 ? {} : { config: line[at + 1] ?? '' })
    : [];
  return [...args.flatMap(({ argChoices = [] }) => argChoices), ...jobs].map(named);
}

/** Those of this machine; none if the state cannot be read. */
async function followedJobs(options: ConfigOption): Promise<string[]> {
  try {
    const [{ configurationAsOwner }, { withSharedStore }] = await Promise.all([
      import('./configuration.ts'),
      import('../daemon/state.ts'),
    ]);
    const states = await withSharedStore(await configurationAsOwner(options), (store) => store.jobs.states());
    return [...states].flatMap(([jobId, state]) => (state === 'ended' ? [] : [jobId]));
  } catch {
    return [];
  }
}
