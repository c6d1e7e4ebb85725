// A setup file of vitest while `npm run test:mutants` finds out which test runs which places of the sources.
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { afterEach, beforeAll } from 'vitest';

const { JOBTAIL_PLACES } = process.env;
const takeAll = () => {
  const places = new Set(globalThis.jobtailPlaces);
  globalThis.jobtailPlaces?.clear();
  // Of processes of their own, see typescript.mjs.
  if (existsSync(JOBTAIL_PLACES)) {
    for (const place of readFileSync(JOBTAIL_PLACES, 'utf8').split('\n').slice(0, -1)) places.add(Number(place));
    rmSync(JOBTAIL_PLACES);
  }
  return [...places];
};

if (JOBTAIL_PLACES !== undefined) {
  let atImport = [];
  beforeAll(() => {
    atImport = takeAll();
  });
  afterEach(({ task }) => {
    Object.assign(task.meta, { places: takeAll(), atImport });
    atImport = [];
  });
}
