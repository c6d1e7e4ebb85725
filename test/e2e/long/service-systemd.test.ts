/** The shipped unit, unchanged, started by a real systemd: from the installation to the stop. */
import { expect, it } from 'vitest';
import { until } from '../../support/e2e-until.ts';
import { Namespace, needsSystemd } from './service-namespace.ts';

/** A job that writes until it is reported to stop. */
const WRITER =
  'i=0; while [ ! -e stop ]; do i=$((i+1)); echo "line $i: příliš žluťoučký kůň"; echo "error $i" >&2; sleep 0.05; done';

/** For the simulated cluster. */
const CONFIG = `
service:
  protocol: soap
  fileTransferUrl: http://127.0.0.1:8090/FileTransferWs
  namespace: http://sandbox.example.org/
  baseUrl: http://127.0.0.1:8090
auth: {method: password, username: alice, passwordCredential: password}
mirror: {directory: /srv/agent}
poll: {minIntervalSeconds: 0.2, maxIntervalSeconds: 1}
`;

interface Job {
  readonly jobId: string;
  readonly tasks: readonly {
    readonly taskId: string;
    readonly directory: string;
    readonly files: { readonly stdout: string };
  }[];
}

it('agent.service does what it says', needsSystemd(), async (context) => {
  const host = await Namespace.boot(context);
  const show = (property: string) => host.show('agent', property);
  const isActive = () => until('the unit to be active', async () => (await show('ActiveState')) === 'active');

  // The commands of docs/service.md, except that the program is there already.
  await host.sh(`
    printf '#!/bin/sh\\nexec /usr/local/bin/node /opt/app/dist/cli/main.js "$@"\\n' > /usr/local/bin/agent
    chmod 755 /usr/local/bin/agent
    mkdir /var/cluster
    systemd-run --quiet --unit=cluster agent sandbox --directory /var/cluster --port 8090
    groupadd --system jobtail
    useradd --system --gid jobtail --no-create-home --shell /usr/sbin/nologin jobtail-agent
    cp /opt/app/systemd/agent*.service /etc/systemd/system/
    systemctl daemon-reload`);
  await until('the cluster to listen', () =>
    host.succeeds('test -s /var/cluster/secrets/password && curl -s -o /dev/null http://127.0.0.1:8090/'),
  );
  const submitted = await host.sh(
    'curl -sf -H "authorization: Bearer $(cat /var/cluster/secrets/control-token)" http://127.0.0.1:8090/sandbox/jobs -d "$1"',
    JSON.stringify({ tasks: [{ command: ['sh', '-c', WRITER] }] }),
  );
  const { jobId, tasks } = JSON.parse(submitted) as Job;
  const [{ taskId, directory, files } = { taskId: '', directory: '', files: { stdout: '' } }] = tasks;
  const mirror = `/srv/agent/${jobId}/live/${taskId}/stdout.log`;
  const configure = (text: string) =>
    host.sh('printf %s "$1" > /etc/agent/config.yaml && chmod 644 /etc/agent/config.yaml', text);
  /** The mirror gets more bytes, and is the beginning of the remote file. */
  const grows = async () => {
    const size = async () => Number(await host.sh('stat -c %s "$1" 2>/dev/null || echo 0', mirror));
    const before = await size();
    await until('the mirror to grow', async () => (await size()) > before + 500);
    const there = await host.sh('cat "$1"', mirror);
    expect((await host.sh('cat "$1"', files.stdout)).startsWith(there), 'it is the beginning').toBe(true);
  };

  // READY, STATUS and the credential, with the configuration that `agent init` wrote.
  const tried = await host.sh(
    `agent init --service --url http://127.0.0.1:8090/FileTransferWs --namespace http://sandbox.example.org/ \\
       --base-url http://127.0.0.1:8090 --method password --username alice --secret-stdin < /var/cluster/secrets/password`,
  );
  expect(tried).toMatch(/^[✓+] sign-in/m);
  expect(await host.sh('stat -c "%a %n" /etc/agent/*')).toBe('644 /etc/agent/config.yaml\n600 /etc/agent/password\n');
  // What a unit of version 0.2.0, with its dynamic user, left.
  await host.sh(`mkdir -p -m 700 /var/lib/private && mkdir -p /var/lib/private/agent/state && ln -s private/agent /var/lib/agent
    touch /var/lib/private/agent/state/old && chown -R 64000:64000 /var/lib/private/agent`);
  await host.sh('systemctl start agent');
  expect(await host.sh('stat -c "%F %U %n" /var/lib/agent /var/lib/agent/state/old')).toBe(
    'directory jobtail-agent /var/lib/agent\nregular empty file jobtail-agent /var/lib/agent/state/old\n',
  );
  expect(await show('ActiveState')).toBe('active');
  expect(await show('StatusText')).toMatch(/^following 0 jobs/);
  expect(await host.journal('agent')).toContain('"msg":"signed in"');

  // What it says while it follows; what the group may read and others may not.
  const pid = await show('MainPID');
  await configure(CONFIG);
  await host.sh('systemctl reload agent');
  await until('the change to be taken', async () => /poll.*configuration changed/.test(await host.journal('agent')));
  expect(await show('MainPID'), 'it is the same process').toBe(pid);
  const watch = ['-c', '/etc/agent/config.yaml', jobId, '--task', taskId, '--file', 'stdout'];
  expect(await host.sh('agent watch "$@"', ...watch)).toBe(`${mirror}\n`);
  await grows();
  await until('systemctl status to tell of it', async () =>
    /^following 1 job, last growth \d+ s ago$/.test(await show('StatusText')),
  );
  expect(await host.sh('journalctl -q --no-pager -o cat -p warning -u agent')).toBe('');
  const asReader = 'setpriv --reuid=4711 --regid="$(getent group jobtail | cut -d: -f3)" --clear-groups';
  expect(await host.sh(`${asReader} head -n 1 "$1"`, mirror)).toMatch(/^line 1: příliš/);
  await expect(host.sh(`${asReader} touch "$1"`, mirror)).rejects.toThrow('Permission denied');
  const asNobody = 'setpriv --reuid=4711 --regid=4711 --clear-groups';
  await expect(host.sh(`${asNobody} head -n 1 "$1"`, mirror)).rejects.toThrow('Permission denied');

  // The sandbox is in force in the process itself.
  const status = await host.sh('cat "/proc/$1/status"', pid);
  expect(status).toMatch(/^NoNewPrivs:\t1$/m);
  expect(status).toMatch(/^Seccomp:\t2$/m);
  for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
    expect(status).toMatch(new RegExp(`^${set}:\t0+$`, 'm'));
  expect(await host.sh('cat "/proc/$1/limits"', pid)).toMatch(/^Max core file size +0 +0 /m);
  expect(/^Uid:\t(\d+)/m.exec(status)?.[1]).toBe((await host.sh('id -u jobtail-agent')).trim());
  // Its view of the file system: all of it is read-only but the state and the mirrors; /home is empty.
  const inside = (command: string) => host.sh(`nsenter -t "$1" -m -- sh -c "$2"`, pid, command);
  for (const place of ['/etc', '/usr/local', '/opt/app', '/var'])
    await expect(inside(`touch ${place}/written`), place).rejects.toThrow('Read-only file system');
  await inside('touch /srv/agent/written /var/lib/agent/written && rm /srv/agent/written /var/lib/agent/written');
  expect(await host.sh('stat -c %a /run/credentials/agent.service/password /etc/agent/password')).toBe('400\n600\n');
  expect(await host.journal('agent')).not.toContain((await host.sh('cat /etc/agent/password')).trim());

  for (let kill = 1; kill <= 2; kill++) {
    await host.sh('systemctl kill -s KILL --kill-who=main agent');
    await until(`systemd to restart it (${kill})`, async () => (await show('NRestarts')) === String(kill));
    await isActive();
    await grows();
  }

  // The job ends, every byte comes, and the unit stops in order and quickly.
  await host.sh('touch "$1/stop"', directory);
  await until('every byte', () => host.succeeds('sleep 0.2; cmp "$1" "$2"', files.stdout, mirror));
  await host.sh('systemctl stop agent');
  expect([await show('Result'), await show('ExecMainStatus')]).toEqual(['success', '0']);
  const at = async (property: string) => Number(await show(`${property}TimestampMonotonic`)) / 1e6;
  expect((await at('InactiveEnter')) - (await at('ActiveExit')), 'seconds to stop').toBeLessThan(5);
  expect(await host.sh('cmp "$1" "$2"', files.stdout, mirror)).toBe('');

  // A wrong configuration is no reason to start again and again.
  await configure(CONFIG.replace('poll:', 'pool:'));
  await expect(host.sh('systemctl start agent')).rejects.toThrow();
  // Not `activating`, which it is while it waits for a restart.
  expect(await show('ActiveState')).toBe('failed');
  expect([await show('ExecMainStatus'), await show('NRestarts')]).toEqual(['3', '0']);
  expect(await show('StatusText')).toContain('pool: unknown key, did you mean poll?');
});
