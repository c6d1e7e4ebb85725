/** The examples of the container image: a configuration that loads, and places and users that fit the image. */
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { loadConfig } from '../../src/config/load.ts';

const EXAMPLES = fileURLToPath(new URL('../../packaging/container/', import.meta.url));
const read = (name: string) => fs.readFileSync(path.join(EXAMPLES, name), 'utf8');
const image = read('Containerfile');
const [, volumes = ''] = /^VOLUME (\[.*\])$/m.exec(image) ?? [];
const WRITTEN: readonly string[] = JSON.parse(volumes);
const [, uid] = /^USER (\d+):\1$/m.exec(image) ?? [];

it('the configuration loads, keeps to the volumes of the image, and serves its health check', async () => {
  const config = await loadConfig(path.join(EXAMPLES, 'config.yaml'));
  for (const { directory } of [config.state, config.mirror]) {
    expect(WRITTEN.some((volume) => `${directory}/`.startsWith(`${volume}/`))).toBe(true);
  }
  expect(image).toContain(`http://127.0.0.1:${config.metrics.listen?.port}/healthz`);
  expect(config.fleet?.urlFile).toBe('/run/secrets/database-url');
});

it('the image has an init that reaps what programs leave: Node.js as process 1 reaps its own children alone', () => {
  const [, entry = '[]'] = /^ENTRYPOINT (\[.*\])$/m.exec(image) ?? [];
  expect(JSON.parse(entry)).toEqual(['/usr/bin/tini', '--', '/usr/bin/agent']);
  expect(image).toMatch(/apt-get install .* tini\b/);
});

it('the Compose file runs the agents with a read-only root, and names only what it defines', async () => {
  const { services, secrets, volumes } = parse(read('compose.yaml'), { merge: true });
  for (const name of ['agent-1', 'agent-2']) {
    const agent = services[name];
    expect(agent).toMatchObject({ hostname: name, read_only: true, cap_drop: ['ALL'], tmpfs: ['/tmp'] });
    for (const secret of agent.secrets) expect(secrets).toHaveProperty(secret);
    const targets = agent.volumes.map((volume: string) => volume.split(':')[1]);
    expect(targets).toEqual(expect.arrayContaining([...WRITTEN, '/etc/agent/config.yaml']));
    for (const volume of agent.volumes
      .map((one: string) => one.split(':')[0])
      .filter((one: string) => !/^\./.test(one)))
      expect(volumes).toHaveProperty(volume);
  }
});

it('the Kubernetes example runs them as the user of the image, and mounts only what it defines', () => {
  const documents = parseAllDocuments(read('kubernetes.yaml'));
  expect(documents.flatMap(({ errors }) => errors)).toEqual([]);
  const byKind = new Map(documents.map((one) => [one.get('kind'), one.toJS()]));
  const { serviceName, template, volumeClaimTemplates, selector } = byKind.get('StatefulSet').spec;
  expect(serviceName).toBe(byKind.get('Service').metadata.name);
  expect(template.metadata.labels).toEqual(selector.matchLabels);
  expect(byKind.get('Service').spec.selector).toEqual(selector.matchLabels);
  const { securityContext, containers, volumes } = template.spec;
  expect(String(securityContext.runAsUser)).toBe(uid);
  const defined = [...volumes, ...volumeClaimTemplates.map((claim: { metadata: object }) => claim.metadata)];
  const names = defined.map(({ name }: { name: string }) => name);
  for (const { name } of containers[0].volumeMounts) expect(names).toContain(name);
  const mounted = containers[0].volumeMounts.map(({ mountPath }: { mountPath: string }) => mountPath);
  expect(mounted).toEqual(expect.arrayContaining([...WRITTEN, '/tmp']));
  expect(containers[0].securityContext).toMatchObject({ readOnlyRootFilesystem: true });
  const claim = volumes.find(({ persistentVolumeClaim }: { persistentVolumeClaim?: object }) => persistentVolumeClaim);
  expect(claim.persistentVolumeClaim.claimName).toBe(byKind.get('PersistentVolumeClaim').metadata.name);
});
