/** A minute and a half of the whole agent in simulated time; fleets have the rest of two minutes. */
import { test } from 'vitest';
import { runFor } from '../many.ts';

test('holds its promises for a minute and a half, whatever happens', { timeout: 600_000 }, () => runFor(90));
