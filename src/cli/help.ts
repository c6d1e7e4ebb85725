/** Texts of the help: exit codes, examples, pages of the documents, what is shown without a command. */
import fs from 'node:fs';
import path from 'node:path';
import { EXIT } from '../errors.ts';
import { packageFile } from '../system/package-file.ts';
import { wrapToColumns } from './show/terminal.ts';

/** The only place of these words: help, manual page and docs/json.md have them from here. */
export const EXIT_CODES: readonly (readonly [code: number, meaning: string])[] = [
  [EXIT.ok, 'done. grep, errors: a line was found'],
  [
    EXIT.failed,
    'verify: a mismatch, or a file that is missing or not proven. sync, unwatch, wait, forget: a file failed or is not proven. forget: you declined. grep, errors: nothing was found. notify --test: a target failed',
  ],
  [EXIT.usage, 'wrong arguments. init: the file exists. grep, errors: any error'],
  [EXIT.config, 'wrong configuration. jobs, watch --mine, wait: service.jobsUrl is missing'],
  [EXIT.locked, 'another agent uses the state directory, or its name in the fleet'],
  [EXIT.signIn, 'the sign-in failed'],
  [EXIT.service, 'the middleware failed, or is unreachable'],
  [EXIT.notFound, 'no such job, or the job is not followed. unwatch --mine: there was no watch --mine'],
  [
    EXIT.local,
    'an error of this machine: permissions, disk, state, a secret of notify that cannot be read. The database of the fleet failed',
  ],
  [EXIT.jobFailed, 'wait: a job failed'],
  [EXIT.jobCanceled, 'wait: a job was canceled'],
  [EXIT.timeIsUp, 'wait: the time is up'],
  [EXIT.internal, 'a defect of the program'],
  [EXIT.interrupted, 'stopped by Ctrl-C. run, sandbox, view: 0 after a signal'],
  [EXIT.terminated, 'stopped by SIGTERM'],
  [EXIT.unread, 'the reader of the output went away before the command had its result'],
];

const HELP_COLUMNS = 80;

export function exitCodesHelp(): string {
  const lines = EXIT_CODES.flatMap(([code, meaning]) =>
    wrapToColumns(`  ${String(code).padEnd(4)} ${meaning}`, HELP_COLUMNS, 5),
  );
  return `\nExit codes (check: of the first step that fails):\n${lines.join('\n')}`;
}

export const documents = () => path.join(path.dirname(packageFile('package.json')), 'docs');

/** Those for users, and those with details. */
const PLACES = ['.', 'dev'];
const PAGE = /^[a-z-]+\.md$/;

/** The text of a page of the documents, with or without `.md`; undefined if there is none of this name. */
export function pageOf(name = ''): string | undefined {
  const page = `${name.replace(/\.md$/, '')}.md`;
  const files = PLACES.map((place) => path.join(documents(), place, page));
  const file = PAGE.test(page) ? files.find((each) => fs.existsSync(each)) : undefined;
  return file === undefined ? undefined : fs.readFileSync(file, 'utf8');
}

/** The names of the pages, in lines. */
export function pagesHelp(): string {
  const names = PLACES.flatMap((place) =>
    fs.readdirSync(path.join(documents(), place)).filter((name) => PAGE.test(name)),
  );
  const pages = [...new Set(names.map((name) => name.slice(0, -'.md'.length)))].join(', ');
  return `Pages (agent help PAGE):\n${wrapToColumns(`  ${pages}`, HELP_COLUMNS).join('\n')}`;
}

export const FIRST_EXAMPLES = `jobtail follows cluster jobs: their output while it grows, and their results.

  agent demo                    see it work, without a cluster
  agent init                    write a configuration for your middleware
  agent jobs                    list your jobs
  agent watch 501 --foreground  follow one, here, until Ctrl-C
`;

/** Without a command. */
export const SHORT_HELP = `${FIRST_EXAMPLES}
  agent run                     follow jobs as a daemon; then: agent watch 501
  agent status, agent tail -f   see what is followed, and its lines
  agent wait, agent verify      wait for the end of a job; prove its files

agent --help lists all commands, agent COMMAND --help the options of one.
`;

/** The errors of commander quote an argument twice. */
export const plainError = (text: string) =>
  text
    .replace(
      /^error: .*'([\s\S]*?)' is invalid(?: for argument '[^']*')?\. Allowed/,
      'agent: "$1" is none of these. Allowed',
    )
    .replace(/^error: command-argument value '[\s\S]*?' is invalid for argument '[^']*'\. /, 'agent: ')
    .replace(/^error: option '.*?(--[\w-]+)[^']*' argument '[\s\S]*?' is invalid\. /, 'agent: $1: ')
    .replace(/^error: /, 'agent: ');
