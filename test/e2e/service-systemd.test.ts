/** The shipped unit, unchanged, started by a real systemd: from the installation to the stop. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { until } from '../support/e2e-until.ts';
import { Namespace, systemdIsMissing } from '../support/service-namespace.ts';

const missing = systemdIsMissing();
if (missing !== undefined) process.stderr.write(`SKIPPED: the unit under a real systemd: ${missing}\n`);

const CONFIG = `
service:
  fileTransferUrl: http://127.0.0.1:8090/FileTransferWs
  namespace: http://sandbox.example.org/
  baseUrl: http://127.0.0.1:8090
auth: {method: password, username: alice, passwordCredential: password}
mirror: {directory: /srv/agent}
poll: {minIntervalSeconds: 0.2, maxIntervalSeconds: 1}
metrics: {listen: 127.0.0.1:9464}
`;

/** A job that writes until it is told to stop. */
const WRITER =
  'i=0; while [ ! -e stop ]; do i=$((i+1)); echo "line $i: příliš žluťoučký kůň"; echo "error $i" >&2; sleep 0.05; done';

it.skipIf(missing !== undefined)('the shipped unit does what it says', { timeout: 300_000 }, async (context) => {
  const host = await Namespace.boot(context);
  context.onTestFailed(async () => {
    process.stderr.write(await host.sh('systemctl status agent --no-pager -l || true; journalctl --no-pager -u agent'));
  });
  const job = await install(host);

  await startAndFollow(host, job);
  await isShutIn(host);
  await survivesKill(host, job);
  await reloads(host);
  await isCaughtWhenItHangs(host, job);
  await stops(host, job);
  await staysDownWithAWrongConfiguration(host);
});

interface Job {
  readonly jobId: string;
  readonly taskId: string;
  readonly stdout: string;
  readonly mirror: string;
}

/** What the README tells to do, except that the program is there already, and a simulated cluster. */
async function install(host: Namespace): Promise<Job> {
  await host.sh(`
    printf '#!/bin/sh\\nexec /usr/local/bin/node /opt/app/dist/cli/main.js "$@"\\n' > /usr/local/bin/agent
    chmod 755 /usr/local/bin/agent
    mkdir /var/cluster
    systemd-run --quiet --unit=cluster agent sandbox --directory /var/cluster --port 8090
    groupadd --system jobtail
    mkdir -m 755 /etc/agent
    cp /opt/app/systemd/agent.service /opt/app/systemd/agent@.service /etc/systemd/system/
    cmp /opt/app/systemd/agent.service /etc/systemd/system/agent.service
    systemctl daemon-reload`);
  await host.sh('printf %s "$1" > /etc/agent/config.yaml; chmod 644 /etc/agent/config.yaml', CONFIG);
  await until('the cluster to listen', () =>
    host.sh('test -s /var/cluster/secrets/password && curl -s -o /dev/null http://127.0.0.1:8090/').then(
      () => true,
      () => false,
    ),
  );
  await host.sh('install -m 600 /var/cluster/secrets/password /etc/agent/password');
  const spec = JSON.stringify({ tasks: [{ command: ['sh', '-c', WRITER] }] });
  const answer = await host.sh(
    'curl -sf -H "authorization: Bearer $(cat /var/cluster/secrets/control-token)" -d "$1" http://127.0.0.1:8090/sandbox/jobs',
    spec,
  );
  const { jobId, tasks } = JSON.parse(answer) as {
    jobId: string;
    tasks: { taskId: string; files: { stdout: string } }[];
  };
  const [task] = tasks;
  if (task === undefined) throw new Error(answer);
  const mirror = `/srv/agent/${jobId}/live/${task.taskId}/stdout.log`;
  return { jobId, taskId: task.taskId, stdout: task.files.stdout, mirror };
}

/** READY, STATUS, the credential; what the group may read and others may not. */
async function startAndFollow(host: Namespace, job: Job): Promise<void> {
  await host.sh('systemctl start agent');
  expect(await host.show('agent', 'ActiveState')).toBe('active');
  expect(await host.show('agent', 'StatusText')).toMatch(/^following 0 jobs/);
  expect(await host.journal('agent')).toContain('"msg":"signed in"');

  const { jobId, taskId } = job;
  expect(await host.sh('agent watch "$1" --task "$2" --file stdout', jobId, taskId)).toBe(`${job.mirror}\n`);
  await grows(host, job);
  await until('systemctl status to tell of it', async () =>
    /^following 1 job, last growth \d+ s ago$/.test(await host.show('agent', 'StatusText')),
  );
  expect(await host.sh('journalctl -q --no-pager -o cat -p warning -u agent')).toBe('');

  const asReader = 'setpriv --reuid=4711 --regid="$(getent group jobtail | cut -d: -f3)" --clear-groups';
  expect(await host.sh(`${asReader} head -n 1 "$1"`, job.mirror)).toMatch(/^line 1: příliš/);
  await expect(host.sh(`${asReader} touch "$1"`, job.mirror)).rejects.toThrow('Permission denied');
  const asNobody = 'setpriv --reuid=4711 --regid=4711 --clear-groups';
  await expect(host.sh(`${asNobody} head -n 1 "$1"`, job.mirror)).rejects.toThrow('Permission denied');
  expect(await host.sh('curl -sf http://127.0.0.1:9464/readyz')).toBe('ok\n');
}

/** The sandbox is in force in the process itself. */
async function isShutIn(host: Namespace): Promise<void> {
  const pid = await host.show('agent', 'MainPID');
  const status = await host.sh('cat "/proc/$1/status"', pid);
  expect(status).toMatch(/^NoNewPrivs:\t1$/m);
  expect(status).toMatch(/^Seccomp:\t2$/m);
  for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb']) {
    expect(status).toMatch(new RegExp(`^${set}:\t0+$`, 'm'));
  }
  const uid = Number(/^Uid:\t(\d+)/m.exec(status)?.[1]);
  expect(uid, 'a dynamic user').toBeGreaterThanOrEqual(61_184);
  // Its view of the file system: all of it is read-only but the state and the mirrors; /home is empty.
  const inside = (command: string) => host.sh(`nsenter -t "$1" -m -- sh -c "$2"`, pid, command);
  for (const place of ['/etc', '/usr/local', '/opt/app', '/var']) {
    await expect(inside(`touch ${place}/written`), place).rejects.toThrow('Read-only file system');
  }
  await inside('touch /srv/agent/written /var/lib/agent/written && rm /srv/agent/written /var/lib/agent/written');
  expect(await host.sh('stat -c %a /run/credentials/agent.service/password /etc/agent/password')).toBe('400\n600\n');
  expect(await host.journal('agent')).not.toContain((await host.sh('cat /etc/agent/password')).trim());
}

async function survivesKill(host: Namespace, job: Job): Promise<void> {
  for (let kill = 1; kill <= 2; kill++) {
    await host.sh('systemctl kill -s KILL --kill-who=main agent');
    await until(
      `systemd to restart it (${kill})`,
      async () => (await host.show('agent', 'NRestarts')) === String(kill),
    );
    await until('it to be active', async () => (await host.show('agent', 'ActiveState')) === 'active');
    await grows(host, job);
  }
}

async function reloads(host: Namespace): Promise<void> {
  const pid = await host.show('agent', 'MainPID');
  const config = (text: string) => host.sh('printf %s "$1" > /etc/agent/config.yaml; systemctl reload agent', text);
  await config(`${CONFIG}results: {intervalSeconds: 7}\n`);
  await until('the change to be taken', async () =>
    (await host.journal('agent')).includes('the configuration changed: results.intervalSeconds 60 -> 7'),
  );
  await config(`${CONFIG}results: {intervalSeconds: often}\n`);
  await until('the change to be refused', async () =>
    (await host.show('agent', 'StatusText')).includes('the changed configuration is refused: '),
  );
  await config(CONFIG);
  await until('the old one to be back', async () => !(await host.show('agent', 'StatusText')).includes('refused'));
  await until('it to be active', async () => (await host.show('agent', 'ActiveState')) === 'active');
  expect(await host.show('agent', 'MainPID'), 'it is the same process').toBe(pid);
}

/** A process that stands still feeds no watchdog. */
async function isCaughtWhenItHangs(host: Namespace, job: Job): Promise<void> {
  const before = Number(await host.show('agent', 'NRestarts'));
  await host.sh('systemctl kill -s STOP --kill-who=main agent');
  await until('the watchdog to restart it', async () => Number(await host.show('agent', 'NRestarts')) === before + 1);
  expect(await host.sh('journalctl --no-pager -o cat -u agent')).toContain('Watchdog timeout');
  await until('it to be active', async () => (await host.show('agent', 'ActiveState')) === 'active');
  await grows(host, job);
}

/** In order, quickly, with every byte. */
async function stops(host: Namespace, job: Job): Promise<void> {
  await host.sh('touch "$(dirname "$1")/stop"', job.stdout);
  await until('every byte', () =>
    host.sh('sleep 0.2; cmp "$1" "$2"', job.stdout, job.mirror).then(
      () => true,
      () => false,
    ),
  );
  await host.sh('systemctl stop agent');
  expect(await host.show('agent', 'Result')).toBe('success');
  expect(await host.show('agent', 'ExecMainStatus')).toBe('0');
  const took =
    Number(await host.show('agent', 'InactiveEnterTimestampMonotonic')) -
    Number(await host.show('agent', 'ActiveExitTimestampMonotonic'));
  expect(took / 1e6, 'seconds to stop').toBeLessThan(5);
  expect(await host.sh('cmp "$1" "$2"', job.stdout, job.mirror)).toBe('');
}

async function staysDownWithAWrongConfiguration(host: Namespace): Promise<void> {
  await host.sh('printf %s "$1" > /etc/agent/config.yaml', CONFIG.replace('poll:', 'pool:'));
  await expect(host.sh('systemctl start agent')).rejects.toThrow();
  await sleep(3_000);
  expect(await host.show('agent', 'ActiveState')).toBe('failed');
  expect(await host.show('agent', 'ExecMainStatus')).toBe('3');
  expect(await host.show('agent', 'NRestarts')).toBe('0');
  expect(await host.show('agent', 'StatusText')).toContain('pool: unknown key, did you mean poll?');
}

/** The mirror gets more bytes, and is the beginning of the remote file. */
async function grows(host: Namespace, { stdout, mirror }: Job): Promise<void> {
  const size = async () => Number(await host.sh('stat -c %s "$1" 2>/dev/null || echo 0', mirror));
  const before = await size();
  await until('the mirror to grow', async () => (await size()) > before + 500);
  const there = await host.sh('cat "$1"', mirror);
  expect((await host.sh('cat "$1"', stdout)).startsWith(there), 'it is the beginning of the remote file').toBe(true);
}
