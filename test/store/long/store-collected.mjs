// Uses a store and gives it up, again and again, while memory is taken and collected.
import { lockDirectory, lockHolder } from '../../../src/store/lock.ts';
import { Store } from '../../../src/store/store.ts';

const [, , directory] = process.argv;
for (let times = 0; times < 20; times++) {
  const store = new Store({ directory, service: 'model', owner: true, now: Date.now });
  store.noteChanges();
  for (let marks = 0; marks < 50; marks++) store.transaction(() => store.capabilities.set('name', String(marks)));
  store.close();
  const lock = lockDirectory(directory);
  lockHolder(directory);
  lock.release();
  // What is collected while memory is taken, as the program does it.
  for (let number = 0, taken = []; number < 1_000_000; number++)
    taken = number % 1000 === 0 ? [] : [...taken.slice(-3), { number }];
  await new Promise((resolve) => setImmediate(resolve));
}
process.stdout.write('still there\n');
