/** What tests need of the machine: without it, `needs(...)` skips them, and run-reporter.ts names it. */
import fs from 'node:fs';
import path from 'node:path';
import type { TestOptions } from 'vitest';
import { FLEET_PLACE } from '../../bench/fleet-node.ts';
import { findDatabasePrograms } from '../../simulator/database/programs.ts';

declare module 'vitest' {
  interface TaskMeta {
    /** Debian packages without which the test cannot run. */
    missingPackages?: readonly string[];
    /** What the machine is not, without which the test cannot run. */
    unmetNeed?: string;
  }
}

/** The one that Debian's packages are made for. */
export const PYTHON = '/usr/bin/python3';

/** The Debian package that each thing comes in: a program, if nothing else is said below. */
const PACKAGE_OF = {
  bash: 'bash',
  chromium: 'chromium',
  curl: 'curl',
  'firefox-esr': 'firefox-esr',
  fish: 'fish',
  ip: 'iproute2',
  man: 'man-db',
  nsenter: 'util-linux',
  openssl: 'openssl',
  pgrep: 'procps',
  postgres: 'postgresql',
  promtool: 'prometheus',
  python3: 'python3-minimal',
  rsync: 'rsync',
  script: 'bsdutils',
  setpriv: 'util-linux',
  ssh: 'openssh-client',
  'ssh-keygen': 'openssh-client',
  sshd: 'openssh-server',
  systemd: 'systemd',
  'systemd-analyze': 'systemd',
  unshare: 'util-linux',
  zsh: 'zsh',
} as const;

export type Need = keyof typeof PACKAGE_OF;

/** What is no program in PATH; a program of the sort that its package has may be asked. */
const IS_THERE: Partial<Record<Need, () => boolean>> = {
  postgres: () => findDatabasePrograms([FLEET_PLACE]) !== undefined,
  systemd: () => fs.existsSync('/lib/systemd/systemd'),
};

/** What a transfer by SSH needs. */
export const SSH: readonly Need[] = ['ssh', 'ssh-keygen', 'sshd', 'rsync'];

/** The options of a test or a suite that is skipped where one of these is missing. */
export function needs(...wanted: readonly Need[]): TestOptions & { readonly skip: boolean } {
  const missing = wanted.filter((need) => !(IS_THERE[need] ?? (() => isProgram(need)))());
  const missingPackages = [...new Set(missing.map((need) => PACKAGE_OF[need]))];
  return { skip: missing.length > 0, meta: { missingPackages } };
}

/** The options of a test or a suite that is skipped where the machine is not so; the end of the run gives the words. */
export function needsThat(isSo: boolean, words: string): TestOptions & { readonly skip: boolean } {
  return isSo ? { skip: false } : { skip: true, meta: { unmetNeed: words } };
}

/** Also where only root has it in PATH. */
function isProgram(name: string): boolean {
  const places = [...(process.env['PATH'] ?? '').split(':'), '/usr/local/sbin', '/usr/sbin', '/sbin'];
  return places.some((place) => fs.existsSync(path.join(place, name)));
}
