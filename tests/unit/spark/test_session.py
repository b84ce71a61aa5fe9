"""The settings that Spark is started with."""

from strandline.spark.session import driver_conf


def test_a_projects_java_options_come_beside_the_engines() -> None:
    conf = driver_conf(
        {"spark.driver.extraJavaOptions": "-Xss4m", "spark.driver.memory": "2g"}, "-Xshare:auto"
    )

    options = conf["spark.driver.extraJavaOptions"].split()
    assert {"-Xss4m", "-Duser.timezone=UTC", "-Xshare:auto"} <= set(options)
    assert conf["spark.driver.memory"] == "2g"


def test_the_engines_java_options_stand_without_a_projects() -> None:
    assert "-Duser.timezone=UTC" in driver_conf({}, "")["spark.driver.extraJavaOptions"]
