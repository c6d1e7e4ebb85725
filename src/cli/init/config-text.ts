/** The configuration of `agent init`: config.example.yaml with the answers in place of the examples. */
import fs from 'node:fs';
import type { AuthMethod } from '../../auth.ts';
import { printableJson } from '../../printable.ts';
import { DEFAULT_PATH } from '../../remote/rest/contract.ts';
import { packageFile } from '../../system/package-file.ts';
import type { RestService } from './service.ts';

export type AnsweredService =
  | {
      readonly protocol: 'soap';
      readonly fileTransferUrl: string;
      readonly namespace: string;
      readonly jobsUrl: string | null;
      /** Null with the method `session-code`. */
      readonly baseUrl: string | null;
    }
  | RestService;

/** Paths as they appear in the file. */
export interface Answers {
  readonly service: AnsweredService;
  readonly method: AuthMethod;
  /** Null with the method `session-code`. */
  readonly username: string | null;
  readonly projectId: string | null;
  /** The key for the file of the secret, and its value: `passwordFile`, `./password`. */
  readonly secret: readonly [key: string, value: string | readonly string[]];
  readonly mirrorDirectory: string;
  readonly stateDirectory: string;
}

export function configText(answers: Answers): string {
  let text = fs.readFileSync(packageFile('config.example.yaml'), 'utf8');
  const replace: Replace = (line, lines) => {
    if (!line.test(text)) throw new Error(`config.example.yaml has no line like ${line}`);
    text = text.replace(line, () => lines.join('\n'));
  };
  const { method, username, projectId, secret } = answers;
  writeService(answers.service, replace);
  replace(withComment('# method: password'), [`  method: ${method}\n`]);
  replace(/^ {2}username: .*$/m, [
    ...(username === null ? [] : [`  username: ${quoted(username)}`]),
    ...(projectId === null ? [] : [`  projectId: ${quoted(projectId)}`]),
  ]);
  replace(/^ {2}passwordFile: .*$/m, [`  ${secret[0]}: ${quoted(secret[1])}`]);
  for (const [section, directory] of [
    ['mirror', answers.mirrorDirectory],
    ['state', answers.stateDirectory],
  ] as const) {
    const block = new RegExp(`^# ${section}:.*\\n(?:#.*\\n)+`, 'm');
    const [lines = ''] = block.exec(text) ?? [];
    replace(block, [
      lines
        .replace(/^# /, '')
        .replace(/^# {3}directory: \S+/m, () => `  directory: ${quoted(directory)}`)
        .replaceAll(/^# {3}/gm, '  # '),
    ]);
  }
  return text.replace(
    /^#.*\n/,
    '# Configuration of jobtail (the command `agent`), written by `agent init`. Try it with `agent check`.\n',
  );
}

type Replace = (line: RegExp, lines: readonly string[]) => void;

/** The keys of one protocol; those of the other one would be errors, and are omitted with their comments. */
function writeService(service: AnsweredService, replace: Replace): void {
  const { baseUrl } = service;
  replace(/^ {2}baseUrl: .*$/m, [baseUrl === null ? '  # baseUrl: null' : `  baseUrl: ${quoted(baseUrl)}`]);
  if (service.protocol === 'rest') {
    if (service.path !== DEFAULT_PATH) replace(/^ {2}# path: .*$/m, [`  path: ${quoted(service.path)}`]);
    replace(/^ {2}# With soap, these keys[\s\S]*?soapVersion: .*\n\n/m, ['']);
    return;
  }
  const { fileTransferUrl, namespace, jobsUrl } = service;
  replace(/^ {2}protocol: rest .*$/m, ['  protocol: soap']);
  const concurrency = '  # concurrency: 4                # requests at a time; up to 17 if the round trip is long\n';
  replace(withComment('# concurrency: 1'), [concurrency]);
  replace(/^ {2}# path: \/heappe .*\n/m, ['']);
  replace(/^ {2}# With soap, these keys.*\n/m, ['']);
  replace(/^ {2}# fileTransferUrl: .*$/m, [`  fileTransferUrl: ${quoted(fileTransferUrl)}`]);
  replace(/^ {2}# namespace: .*$/m, [`  namespace: ${quoted(namespace)}`]);
  if (jobsUrl !== null) replace(/^ {2}# jobsUrl: null .*$/m, [`  jobsUrl: ${quoted(jobsUrl)}`]);
}

/** A line of a section, and those that go on with its comment. */
const withComment = (begin: string) => new RegExp(`^ {2}${begin} .*\\n(?: {2}# {20,}#.*\\n)*`, 'm');

/** JSON is valid YAML for any text. */
const quoted = (value: string | readonly string[]) => printableJson(value);
