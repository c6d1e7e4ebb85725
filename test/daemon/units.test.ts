/** The units themselves; a real systemd starts one in test/e2e/long/service-systemd.test.ts. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { needs } from '../support/needs.ts';

const UNITS = fileURLToPath(new URL('../../systemd/', import.meta.url));

const read = (unit: string) => fs.readFileSync(`${UNITS}${unit}`, 'utf8');
/** Without the comment at the beginning, which says which of the two it is. */
const bodyOf = (unit: string) => read(unit).slice(read(unit).indexOf('[Unit]'));

describe.each(['agent.service', 'agent@.service'])('%s', (unit) => {
  it('is understood without a complaint', needs('systemd-analyze'), () => {
    const { status, stdout, stderr } = spawnSync(
      'systemd-analyze',
      ['verify', '--recursive-errors=yes', '--man=no', `${UNITS}${unit}`],
      { encoding: 'utf8' },
    );
    expect({ status, said: stdout + stderr }).toEqual({ status: 0, said: '' });
  });

  it('is shut in as far as Node.js can be', needs('systemd-analyze'), () => {
    const { status, stdout } = spawnSync(
      'systemd-analyze',
      ['security', '--offline=true', '--threshold=11', '--no-pager', `${UNITS}${unit}`],
      { encoding: 'utf8' },
    );
    expect(stdout).toMatch(/Overall exposure level .*: 1\.1 OK/);
    expect(status).toBe(0);
  });

  it('leaves no image of its memory behind', () => {
    expect(read(unit)).toMatch(/^LimitCORE=0$/m);
  });
});

it('the template is the unit with other paths', () => {
  const expected = bodyOf('agent.service')
    .replace('jobtail agent:', 'jobtail agent %i:')
    .replaceAll('/etc/agent/', '/etc/agent/%i/')
    .replaceAll('/srv/agent', '/srv/agent-%i')
    .replaceAll('/var/lib/agent', '/var/lib/agent-%i')
    .replaceAll(/^((?:State|Runtime)Directory)=agent$/gm, '$1=agent-%i');
  expect(bodyOf('agent@.service')).toBe(expected);
});
