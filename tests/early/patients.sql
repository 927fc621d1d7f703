-- A ledger written by commit e7578a9.
BEGIN TRANSACTION;
CREATE TABLE expost_account (
  id INTEGER PRIMARY KEY,
  ledger INTEGER NOT NULL REFERENCES expost_ledger,
  parent INTEGER REFERENCES expost_account,
  path TEXT NOT NULL,
  epsilon_limit INTEGER NOT NULL CHECK (epsilon_limit >= 0),
  delta_limit INTEGER NOT NULL CHECK (delta_limit BETWEEN 0 AND 1000000000000000000),
  epsilon_spent INTEGER NOT NULL DEFAULT 0 CHECK (epsilon_spent BETWEEN 0 AND epsilon_limit),
  delta_spent INTEGER NOT NULL DEFAULT 0 CHECK (delta_spent BETWEEN 0 AND delta_limit),
  epsilon_reserved INTEGER NOT NULL DEFAULT 0 CHECK (epsilon_reserved BETWEEN 0 AND epsilon_limit - epsilon_spent),
  delta_reserved INTEGER NOT NULL DEFAULT 0 CHECK (delta_reserved BETWEEN 0 AND delta_limit - delta_spent),
  closed INTEGER NOT NULL DEFAULT 0 CHECK (closed IN (0, 1)),
  UNIQUE (ledger, path)
) STRICT;
INSERT INTO "expost_account" VALUES(1,1,NULL,'patients',5000000000000,1000000000000000,2000000000000,2000000000000,750000000000,1000000000000,0);
INSERT INTO "expost_account" VALUES(2,1,1,'patients/alice',2500000000000,100000000000000,250000000000,1000000000000,0,0,0);
CREATE TABLE expost_claim (digest TEXT PRIMARY KEY, json TEXT NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO "expost_claim" VALUES('0ca80c0b20142a1f8a6abf9f0cced34e7d070d9458ac68386084d8ec2f698304','{"delta":"0","neighbours":null,"otherwise":null,"parts":[["answered","1"],["nothing","0"]]}');
INSERT INTO "expost_claim" VALUES('a6ea7f9c16779a53a7aedd9e954284f797555ba0bec3c9ec75da1c477f75e7a0','{"delta":"1e-6","neighbours":null,"otherwise":null,"parts":[["large","0.75"],["small","0.25"]]}');
CREATE TABLE expost_entry (
  ledger INTEGER NOT NULL REFERENCES expost_ledger,
  number INTEGER NOT NULL CHECK (number >= 1),
  account INTEGER NOT NULL REFERENCES expost_account,
  operation TEXT NOT NULL CHECK (operation IN ('run', 'open', 'reserve')),
  subject TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  claim TEXT NOT NULL REFERENCES expost_claim,
  label TEXT,
  key TEXT,
  epsilon INTEGER NOT NULL CHECK (epsilon >= 0),
  delta INTEGER NOT NULL CHECK (delta >= 0),
  owner TEXT REFERENCES expost_owner,
  lease_until INTEGER,
  begun INTEGER NOT NULL CHECK (begun IN (0, 1)),
  state TEXT NOT NULL DEFAULT 'reserved' CHECK (state IN ('reserved', 'settled', 'forfeited', 'voided')),
  part TEXT,
  charged_epsilon INTEGER CHECK (charged_epsilon BETWEEN 0 AND epsilon),
  charged_delta INTEGER CHECK (charged_delta BETWEEN 0 AND delta),
  output TEXT,
  digest TEXT,
  reserved_at INTEGER NOT NULL,
  ended_at INTEGER,
  PRIMARY KEY (ledger, number),
  CHECK ((owner IS NULL) <> (lease_until IS NULL)),
  CHECK (CASE state
    WHEN 'reserved' THEN charged_epsilon IS NULL AND charged_delta IS NULL AND ended_at IS NULL AND part IS NULL
    WHEN 'settled' THEN part IS NOT NULL AND charged_epsilon IS NOT NULL AND charged_delta = delta
    WHEN 'forfeited' THEN charged_epsilon = epsilon AND charged_delta = delta
    ELSE begun = 0 AND charged_epsilon = 0 AND charged_delta = 0 END)
) STRICT, WITHOUT ROWID;
INSERT INTO "expost_entry" VALUES(1,1,2,'reserve','Guarantee({''large'': 0.75, ''small'': 0.25}, delta=1e-6)','a6ea7f9c16779a53a7aedd9e954284f797555ba0bec3c9ec75da1c477f75e7a0','a6ea7f9c16779a53a7aedd9e954284f797555ba0bec3c9ec75da1c477f75e7a0','job 17',NULL,750000000000,1000000000000,'4ecd427fba24c664',NULL,1,'settled','"small"',250000000000,1000000000000,NULL,NULL,1794833729304684,1794833729315564);
INSERT INTO "expost_entry" VALUES(1,2,1,'run','Coin(epsilon=1, sensitivity=1, heads=1, neighbours=None)','93f9a0584ccb173feed703e5590213d8e612b14825dfd7b09e3763179d61ad4a','0ca80c0b20142a1f8a6abf9f0cced34e7d070d9458ac68386084d8ec2f698304',NULL,'coin',1000000000000,0,'4ecd427fba24c664',NULL,1,'settled','"answered"',1000000000000,0,'2','d4735e3a265e16eee03f59718b9b5d03019c07d8b6c51f90da3a666eec13ab35',1794833730822853,1794833730856163);
INSERT INTO "expost_entry" VALUES(1,3,1,'reserve','Guarantee({''large'': 0.75, ''small'': 0.25}, delta=1e-6)','a6ea7f9c16779a53a7aedd9e954284f797555ba0bec3c9ec75da1c477f75e7a0','a6ea7f9c16779a53a7aedd9e954284f797555ba0bec3c9ec75da1c477f75e7a0',NULL,NULL,750000000000,1000000000000,'4ecd427fba24c664',NULL,0,'voided',NULL,0,0,NULL,NULL,1794833730867760,1794833730875612);
INSERT INTO "expost_entry" VALUES(1,4,1,'reserve','Guarantee({''large'': 0.75, ''small'': 0.25}, delta=1e-6)','a6ea7f9c16779a53a7aedd9e954284f797555ba0bec3c9ec75da1c477f75e7a0','a6ea7f9c16779a53a7aedd9e954284f797555ba0bec3c9ec75da1c477f75e7a0',NULL,'open',750000000000,1000000000000,'4ecd427fba24c664',NULL,1,'reserved',NULL,NULL,NULL,NULL,NULL,1794833730881747,NULL);
INSERT INTO "expost_entry" VALUES(1,5,1,'reserve','Guarantee({''large'': 0.75, ''small'': 0.25}, delta=1e-6)','a6ea7f9c16779a53a7aedd9e954284f797555ba0bec3c9ec75da1c477f75e7a0','a6ea7f9c16779a53a7aedd9e954284f797555ba0bec3c9ec75da1c477f75e7a0',NULL,NULL,750000000000,1000000000000,'be2728e27a2050ef',NULL,1,'forfeited',NULL,750000000000,1000000000000,NULL,NULL,1794833730922295,1794833730935568);
CREATE TABLE expost_event (
  ledger INTEGER NOT NULL REFERENCES expost_ledger,
  sequence INTEGER NOT NULL,
  line TEXT NOT NULL,
  hash TEXT NOT NULL CHECK (length(hash) = 64),
  PRIMARY KEY (ledger, sequence)
) STRICT, WITHOUT ROWID;
INSERT INTO "expost_event" VALUES(1,1,'{"at":1794833729239580,"body":{"limit":[5000000000000,1000000000000000],"name":"patients","neighbours":"add-remove","unit":"person"},"entry":null,"event":"create","sequence":1}','3083625619749a3e22cbecf4a7a4d319a2db613bdddb3a04c4bf0e13e34e5dd7');
INSERT INTO "expost_event" VALUES(1,2,'{"at":1794833729274013,"body":{"account":"patients/alice","limit":[2000000000000,100000000000000]},"entry":null,"event":"account","sequence":2}','26ee7b75ac020da57641bfaa2e23e57b039cfc91729ff90193ac0bccb1e51b94');
INSERT INTO "expost_event" VALUES(1,3,'{"at":1794833729304684,"body":{"account":"patients/alice","begun":true,"claim":"a6ea7f9c16779a53a7aedd9e954284f797555ba0bec3c9ec75da1c477f75e7a0","fingerprint":"a6ea7f9c16779a53a7aedd9e954284f797555ba0bec3c9ec75da1c477f75e7a0","guarantee":{"delta":"1e-6","neighbours":null,"otherwise":null,"parts":[["large","0.75"],["small","0.25"]]},"key":null,"label":"job 17","operation":"reserve","subject":"Guarantee({''large'': 0.75, ''small'': 0.25}, delta=1e-6)","worst":[750000000000,1000000000000]},"entry":1,"event":"reserve","sequence":3}','6f42560803fe891b80d40e5fe0e2dba71d1d3f096fba922c9ec24910920d5fc3');
INSERT INTO "expost_event" VALUES(1,4,'{"at":1794833729315564,"body":{"charged":[250000000000,1000000000000],"output":null,"part":"small"},"entry":1,"event":"settle","sequence":4}','8326a1ebb2c96020e2eef343dfe2d701c428b73263811f48292d6aa2c79e149f');
INSERT INTO "expost_event" VALUES(1,5,'{"at":1794833730822853,"body":{"account":"patients","begun":true,"claim":"0ca80c0b20142a1f8a6abf9f0cced34e7d070d9458ac68386084d8ec2f698304","fingerprint":"93f9a0584ccb173feed703e5590213d8e612b14825dfd7b09e3763179d61ad4a","guarantee":{"delta":"0","neighbours":null,"otherwise":null,"parts":[["answered","1"],["nothing","0"]]},"key":"coin","label":null,"operation":"run","subject":"Coin(epsilon=1, sensitivity=1, heads=1, neighbours=None)","worst":[1000000000000,0]},"entry":2,"event":"reserve","sequence":5}','bbdeb360d24e5d63d022d6f55e7faafb981ef0bba676929556d810a579ed00ab');
INSERT INTO "expost_event" VALUES(1,6,'{"at":1794833730856163,"body":{"charged":[1000000000000,0],"output":"d4735e3a265e16eee03f59718b9b5d03019c07d8b6c51f90da3a666eec13ab35","part":"answered"},"entry":2,"event":"settle","sequence":6}','c019e6253034cd6a23cb920c33314fd4cf46fa9eabd700138e6e834e3b5b7421');
INSERT INTO "expost_event" VALUES(1,7,'{"at":1794833730867760,"body":{"account":"patients","begun":false,"claim":"a6ea7f9c16779a53a7aedd9e954284f797555ba0bec3c9ec75da1c477f75e7a0","fingerprint":"a6ea7f9c16779a53a7aedd9e954284f797555ba0bec3c9ec75da1c477f75e7a0","key":null,"label":null,"operation":"reserve","subject":"Guarantee({''large'': 0.75, ''small'': 0.25}, delta=1e-6)","worst":[750000000000,1000000000000]},"entry":3,"event":"reserve","sequence":7}','6b7b4bceb1f3c35a94ba89b3d5098cb3d58ad20f273f7693848e2d0ded604ea8');
INSERT INTO "expost_event" VALUES(1,8,'{"at":1794833730875612,"body":{"charged":[0,0],"output":null,"part":null},"entry":3,"event":"void","sequence":8}','12dffd77bcd13cf7a43b6b77216b0ec124de6338fa0e5994d0892f6df71232fe');
INSERT INTO "expost_event" VALUES(1,9,'{"at":1794833730881747,"body":{"account":"patients","begun":false,"claim":"a6ea7f9c16779a53a7aedd9e954284f797555ba0bec3c9ec75da1c477f75e7a0","fingerprint":"a6ea7f9c16779a53a7aedd9e954284f797555ba0bec3c9ec75da1c477f75e7a0","key":"open","label":null,"operation":"reserve","subject":"Guarantee({''large'': 0.75, ''small'': 0.25}, delta=1e-6)","worst":[750000000000,1000000000000]},"entry":4,"event":"reserve","sequence":9}','5d6db0e010f1c8cc19b5ad5318a275af9e6a6b874d31c4a00e80e9aafe74ce74');
INSERT INTO "expost_event" VALUES(1,10,'{"at":1794833730897062,"body":{},"entry":4,"event":"begin","sequence":10}','66f02e1d573c374f5cc7991f61d1588b1e499f452b733e9efd08335f3ee72075');
INSERT INTO "expost_event" VALUES(1,11,'{"at":1794833730903697,"body":{"account":"patients/alice","by":"board","limit":[2500000000000,100000000000000],"reason":"wave"},"entry":null,"event":"raise","sequence":11}','cd69fd70a3ac6f9ae5d843429b3ee1a15ac09fe728e243c28e5e03f22077ed8c');
INSERT INTO "expost_event" VALUES(1,12,'{"at":1794833730922295,"body":{"account":"patients","begun":true,"claim":"a6ea7f9c16779a53a7aedd9e954284f797555ba0bec3c9ec75da1c477f75e7a0","fingerprint":"a6ea7f9c16779a53a7aedd9e954284f797555ba0bec3c9ec75da1c477f75e7a0","guarantee":{"delta":"1e-6","neighbours":null,"otherwise":null,"parts":[["large","0.75"],["small","0.25"]]},"key":null,"label":null,"operation":"reserve","subject":"Guarantee({''large'': 0.75, ''small'': 0.25}, delta=1e-6)","worst":[750000000000,1000000000000]},"entry":5,"event":"reserve","sequence":12}','5708dbd4869a2751b60e9f9aaf9965a6293c0a63dac4118bd458265fc8457ebc');
INSERT INTO "expost_event" VALUES(1,13,'{"at":1794833730935568,"body":{"charged":[750000000000,1000000000000],"output":null,"part":null},"entry":5,"event":"forfeit","sequence":13}','568f89cd4b703f6cfe99c06bea06df6a10fe7902366d1b5ee482f69e35fc35bf');
CREATE TABLE expost_ledger (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  neighbours TEXT NOT NULL CHECK (neighbours IN ('add-remove', 'substitute')),
  unit TEXT NOT NULL,
  sequence INTEGER NOT NULL CHECK (sequence >= 0),
  entries INTEGER NOT NULL CHECK (entries >= 0),
  at INTEGER NOT NULL,
  head TEXT NOT NULL CHECK (length(head) = 64)
) STRICT;
INSERT INTO "expost_ledger" VALUES(1,'patients','add-remove','person',13,5,1794833730935568,'568f89cd4b703f6cfe99c06bea06df6a10fe7902366d1b5ee482f69e35fc35bf');
CREATE TABLE expost_owner (
  id TEXT PRIMARY KEY,
  ledger INTEGER NOT NULL REFERENCES expost_ledger,
  identity TEXT NOT NULL,
  deadline INTEGER NOT NULL,
  expired INTEGER NOT NULL DEFAULT 0 CHECK (expired IN (0, 1))
) STRICT, WITHOUT ROWID;
INSERT INTO "expost_owner" VALUES('4ecd427fba24c664',1,'{"machine":"12937181-b299-4ef3-a8cf-0107dfbcc968 pid:[4026531836]","pid":7558,"started":"1715277"}',1794833789304684,0);
INSERT INTO "expost_owner" VALUES('be2728e27a2050ef',1,'{"machine":"12937181-b299-4ef3-a8cf-0107dfbcc968 pid:[4026531836]","pid":7558,"started":"1715277"}',1794833790922295,0);
CREATE TABLE expost_schema (number INTEGER PRIMARY KEY, name TEXT NOT NULL, digest TEXT);
INSERT INTO "expost_schema" VALUES(1,'0001_books','686451cf77976ac9ac606a7ebbb644a8cc64bcf40146a884068517645e576abf');
INSERT INTO "expost_schema" VALUES(2,'0002_guards','6d12cce4d94700a9f8fd7c260c66f485df3a71cf2ec1b868b821d02edc078868');
COMMIT;
